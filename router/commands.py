"""The commands: serve, init, check, schema, explain, health, train, eval, pipelines, replay, top, version."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from router.app import App
from router.errors import RouterError
from router.explain import error_document
from router.files import raise_limit
from router.fleet.discover import Found, discover, suggest_yaml
from router.garbage import collect_rarely
from router.health import health
from router.learning.commands import evaluate, train
from router.listing import router_version
from router.observe import logs
from router.observe.decisions import line_schema
from router.pipelines.command import pipelines
from router.replay.command import replay
from router.settings.command_line import from_urls
from router.settings.fields import Address
from router.settings.load import Loaded, load
from router.settings.model import Settings
from router.settings.problems import SettingsError
from router.settings.reaching import DEFAULT_FILE
from router.settings.schema import schema
from router.top import top

cli = typer.Typer(
    name="twolane",
    help="A router in front of the language model servers that you already run.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
err = Console(stderr=True, highlight=False)

ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="Settings file (YAML).")]


def _say(text: str) -> None:
    with suppress(OSError):  # nobody can read it; what was asked for is done all the same
        err.print(text, markup=False, soft_wrap=True)


def _run(work: Any) -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _refuse(error: SettingsError) -> typer.Exit:
    for problem in error.problems:
        _say(str(problem))
    return typer.Exit(2)


def _load_or_exit(path: Path) -> Loaded:
    try:
        return load(path, or_pipe=True)
    except SettingsError as error:
        raise _refuse(error) from None


def _source(
    urls: list[str] | None,
    config: Path | None,
    listen: str | None = None,
    admin: str | None = None,
    *,
    insecure: bool = False,
) -> Loaded | Settings:
    """A file, URLs, ./twolane.yaml, or what listens on this machine; says which where nobody named one."""
    if config is not None and (urls or listen or admin or insecure):
        _say("give either URLs and addresses or -c FILE, not both: a file says where to listen itself")
        raise typer.Exit(2)
    if config is None and not (urls or listen or admin) and DEFAULT_FILE.exists():
        config = DEFAULT_FILE
        _say(f"settings: {DEFAULT_FILE} in this folder")
    if config is not None:
        return _load_or_exit(config)
    try:
        return from_urls(urls or _urls_of_this_machine(), listen=listen, admin=admin, insecure=insecure)
    except SettingsError as error:
        raise _refuse(error) from None


def _urls_of_this_machine() -> list[str]:
    found: list[Found] = _run(discover())
    if not found:
        _say(
            "nothing to serve: no inference server answers on the usual ports of this machine.\n"
            "Start one, or name it: twolane serve http://HOST:PORT"
        )
        raise typer.Exit(2)
    for server in found:
        _say(f"found {server.identity.engine} at {server.url}")
    _say("`twolane init` writes this down as a file that you can edit")
    return [server.url for server in found]


def _app(source: Loaded | Settings) -> App:
    return App(source.settings, source.path, source.digest) if isinstance(source, Loaded) else App(source)


def _settings_of(source: Loaded | Settings) -> Settings:
    return source.settings if isinstance(source, Loaded) else source


@cli.command()
def serve(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL]...", help="Backends, e.g. http://127.0.0.1:8090")
    ] = None,
    config: ConfigFile = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT for clients, where there is no file.")] = None,
    admin: Annotated[str | None, typer.Option(help="HOST:PORT for figures and controls, likewise.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without keys, likewise.")
    ] = False,
) -> None:
    """Run the router."""
    source = _source(urls, config, listen, admin, insecure=insecure)
    settings = _settings_of(source)
    logs.configure(settings.log.level, settings.log.format)
    code = _run(_serve(source))
    logs.give_up_unwritten()
    raise typer.Exit(code)


async def _serve(source: Loaded | Settings) -> int:
    raise_limit()
    app = _app(source)
    app.heed_signals()
    try:
        listen, admin = await app.start()
    except OSError as error:
        _say(f"cannot listen on {error.strerror or error}; stop what runs there, or choose another address")
        await app.close()
        return 1
    _say(f"twolane {router_version()} serves on {_url(listen, app.settings)}")
    if not (app.settings.keys or listen.is_local):
        _say("  without keys: whoever reaches this address may use your servers (insecure)")
    if admin is not None:
        _say(f"admin and metrics on {_url(admin, app.settings)}")
    for backend in app.backends():
        slots = f", {backend['slots']} slots" if backend["slots"] else ""
        _say(f"  {backend['lane']:<10} {backend['name']}: {backend['engine']}{slots}, {backend['health']}")
    collect_rarely()
    await app.run()
    return 0


def _url(address: Address, settings: Settings) -> str:
    if address.path:
        return str(address)
    return f"{'https' if settings.tls is not None else 'http'}://{address}"


@cli.command()
def init(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; never overwritten.")] = DEFAULT_FILE,
) -> None:
    """Look for inference servers on this machine and write a commented settings file."""
    if output.exists():
        _say(f"{output} exists already and is left alone; use -o FILE")
        raise typer.Exit(1)
    found: list[Found] = _run(discover())
    if not found:
        _say("no inference server answers on the usual ports of this machine; start one and try again")
        raise typer.Exit(1)
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(suggest_yaml(found))
    except FileExistsError:
        _say(f"{output} is a link to a file that does not exist; use -o FILE")
        raise typer.Exit(1) from None
    except OSError as error:
        _say(f"{output} cannot be written: {error.strerror}; use -o FILE")
        raise typer.Exit(1) from None
    for server in found:
        _say(f"found {server.identity.engine} at {server.url}")
    _say(f"wrote {output}; now run: twolane serve -c {output}")


@cli.command()
def check(file: Annotated[Path, typer.Argument(help="Settings file.")]) -> None:
    """Check a settings file; exit 2 and one line per problem where there are any."""
    settings = _load_or_exit(file).settings
    _say(f"{file}: fine ({len(settings.backends)} backends, policy {settings.policy.use})")


@cli.command("schema")
def print_schema(
    decisions: Annotated[bool, typer.Option("--decisions", help="That of a line of the decision log instead.")] = False,
) -> None:
    """Print the JSON Schema of the settings file, for editors."""
    _print_json(line_schema() if decisions else schema())


@cli.command()
def explain(config: ConfigFile = None) -> None:
    """Say what would happen to the call on standard input ({"path", "headers", "body"}), without sending it."""
    source = _source(None, config)
    logs.configure("error", _settings_of(source).log.format)
    try:
        asked = orjson.loads(sys.stdin.buffer.read())
    except orjson.JSONDecodeError as error:
        _say(f"standard input is not JSON: {error}")
        raise typer.Exit(2) from None
    document, code = _run(_explain(source, asked))
    _print_json(document)
    raise typer.Exit(code)


async def _explain(source: Loaded | Settings, asked: object) -> tuple[dict[str, Any], int]:
    app = _app(source)
    try:
        app.ask_backends()
        await app.rounds.first_answers(within_s=2.0)
        return app.explain(asked), 0
    except RouterError as error:
        return error_document(error), 1
    finally:
        await app.close()


cli.command("health")(health)
cli.command("train")(train)
cli.command("eval")(evaluate)
cli.command("pipelines")(pipelines)
cli.command("replay")(replay)
cli.command("top")(top)


@cli.command("version")
def print_version() -> None:
    """Print the version."""
    _print(f"twolane {router_version()}\n".encode())


def _version_and_end(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@cli.callback()
def _flags(
    version: Annotated[
        bool, typer.Option("--version", callback=_version_and_end, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """A router in front of the language model servers that you already run."""


def _print_json(document: dict[str, Any]) -> None:
    _print(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _print(data: bytes) -> None:
    """To standard output. Ends the command where it cannot be written, as on a full disk."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # whoever read it has seen enough; typer knows that
    except OSError as error:
        logs.give_up_unwritten()
        _say(f"standard output cannot be written: {error.strerror}")
        raise typer.Exit(1) from None
