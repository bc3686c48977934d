"""Where the router does otherwise than nginx 1.22, as Debian has it, and why that is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REFUSED: Final = "own 4xx closed"
BROKEN: Final = "own 5xx kept"
"""Said to the client about the backend; the client's connection is not to blame."""
SERVED: Final = "200 kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Cases in which both differ in the same way for one reason.

    Either by their outcome (`tests.http.observed.Observed.outcome`), and then the rest follows from it, or with the
    same outcome in `aspects`, which are fields of `Observed`.
    """

    why: str
    cases: tuple[str, ...]
    ours: str = ""
    nginx: str = ""
    aspects: tuple[str, ...] = ()

    @property
    def what(self) -> tuple[object, ...]:
        return self.ours, self.nginx, self.aspects


LISTED: Final = (
    # --- requests: stricter
    Listed(
        why="A line ends with CR LF. Who takes a bare LF reads other lines than who does not: there requests can hide.",
        cases=(
            "request.lines.bare_lf",
            "request.lines.bare_lf_in_fields",
            "request.lines.bare_lf_at_the_end",
            "request.framing.chunk_size_with_bare_lf",
            "request.framing.chunk_data_ends_with_bare_lf",
            "request.framing.chunk_extension_with_bare_lf",
        ),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="A chunk size is hexadecimal digits alone (RFC 9112, 7.1); blanks behind it were used to smuggle.",
        cases=("request.framing.chunk_extension_behind_blank", "request.framing.chunk_size_with_blank"),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="nginx does not read trailers. One that is no field, or that is about framing, belongs to nothing honest.",
        cases=("request.framing.trailer_with_length", "request.framing.trailer_without_colon"),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="No field by RFC 9110, 5.1 and 5.5. nginx passes it on or drops it without a word.",
        cases=(
            "request.lines.no_colon",
            "request.lines.name_with_parenthesis",
            "request.lines.name_with_high_byte",
            "request.lines.control_in_value",
            "request.lines.delete_in_value",
        ),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="A request line has two blanks, each between two words (RFC 9112, 3).",
        cases=("request.lines.blank_behind_version",),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="No API of a language model has methods of its own, and the parser knows only registered ones.",
        cases=("request.plain.made_up_method",),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="Bytes beyond ASCII are percent-encoded in a target (RFC 3986, 2); servers disagree on what they mean raw.",
        cases=("request.target.high_bytes",),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="There is no HTTP/1.2: whoever writes it is no client of a model.",
        cases=("request.version.http_1_2",),
        ours="own 5xx closed",
        nginx=SERVED,
    ),
    Listed(
        why="A minor version has one digit (RFC 9112, 2.3).",
        cases=("request.version.http_1_10",),
        ours=REFUSED,
        nginx=SERVED,
    ),
    Listed(
        why="HTTP/0.9 has no head, so an answer cannot say what it is. nginx serves it with a bare body.",
        cases=("request.version.http_0_9", "request.smuggling.line_break_in_target"),
        ours="own 5xx closed",
        nginx="closed",
    ),
    Listed(
        why="WebSocket is not spoken, and the client is told so. nginx, without a special set-up, drops the offer.",
        cases=("request.connection.upgrade_to_websocket",),
        ours="own 4xx kept",
        nginx=SERVED,
    ),
    # --- requests: refused by both, in other words
    Listed(
        why="Not supported (5xx) or not valid (4xx): both refuse and close.",
        cases=(
            "request.plain.trace",
            "request.plain.connect",
            "request.version.http_0_9_by_name",
            "request.version.http_2_preface",
        ),
        ours="own 5xx closed",
        nginx=REFUSED,
    ),
    Listed(
        why="The same the other way round: to nginx a coding that it does not know is one that it does not support.",
        cases=(
            "request.smuggling.coding_chunked_then_gzip",
            "request.smuggling.coding_list_of_chunked_twice",
            "request.smuggling.coding_identity",
            "request.smuggling.coding_empty",
            "request.smuggling.coding_with_comma",
            "request.smuggling.coding_behind_vertical_tab",
        ),
        ours=REFUSED,
        nginx="own 5xx closed",
    ),
    Listed(
        why="Both refuse a body over the limit before it comes. nginx then reads it all, to keep the connection.",
        cases=("request.size.body_over_the_limit", "request.size.body_over_the_limit_that_waits"),
        ours=REFUSED,
        nginx="own 4xx silent",
    ),
    # --- requests: more lenient
    Listed(
        why="Blanks and tabs around a value mean nothing (RFC 9110, 5.5).",
        cases=("request.smuggling.length_with_blanks_around",),
        ours=SERVED,
        nginx=REFUSED,
    ),
    Listed(
        why="The same; nginx knows no tab here.",
        cases=("request.smuggling.coding_behind_tab",),
        ours=SERVED,
        nginx="own 5xx closed",
    ),
    Listed(
        why="An empty Host is right where the target has no authority (RFC 9110, 7.2); nothing is decided by it here.",
        cases=("request.lines.empty_host",),
        ours=SERVED,
        nginx=REFUSED,
    ),
    Listed(
        why="`OPTIONS *` is valid (RFC 9112, 3.2.4) and goes where `passthrough` sends all that is not known.",
        cases=("request.target.asterisk",),
        ours=SERVED,
        nginx=REFUSED,
    ),
    Listed(
        why="Paths are compared as they came and never decoded; what encodings and dots mean, the backend says.",
        cases=(
            "request.target.encoded_nul",
            "request.target.bad_encoding",
            "request.target.percent_at_the_end",
            "request.target.dots_above_the_root",
        ),
        ours=SERVED,
        nginx=REFUSED,
    ),
    # --- requests: what reaches the backend
    Listed(
        why="A fragment is no part of a request (RFC 9110, 7.1) and stays here.",
        cases=("request.target.fragment", "request.target.fragment_behind_query"),
        aspects=("reached",),
    ),
    Listed(
        why="Fields that `Connection` names are for one hop (RFC 9110, 7.6.1). nginx drops `Connection` and not those.",
        cases=(
            "request.connection.close_in_a_list",
            "request.connection.names_a_field",
            "request.connection.names_fields_twice",
            "request.connection.upgrade_h2c",
            "request.smuggling.connection_names_content_type",
        ),
        aspects=("reached_fields",),
    ),
    Listed(
        why="For one hop by themselves: a proxy's password, and trailers that are not passed on.",
        cases=("request.connection.proxy_authorization", "request.framing.trailer"),
        aspects=("reached_fields",),
    ),
    Listed(
        why="Old clients write it for `Connection`, and it is taken for that.",
        cases=("request.connection.proxy_connection",),
        ours="200 closed",
        nginx=SERVED,
    ),
    Listed(
        why="Keys and cookies are for the router, and claims about addresses count from trusted proxies alone.",
        cases=("request.fields.key", "request.fields.cookie", "request.fields.forwarded_for"),
        aspects=("reached_fields",),
    ),
    Listed(
        why="Names with underscores or dots are valid (RFC 9110, 5.6.2). nginx drops them: CGI would mix them up.",
        cases=(
            "request.lines.name_with_underscore",
            "request.lines.name_with_dot",
            "request.lines.name_with_odd_token",
            "request.smuggling.length_with_other_name",
            "request.smuggling.coding_with_underscore",
        ),
        aspects=("reached_fields",),
    ),
    Listed(
        why="Calls are read to be classified, and servers of models cannot undo codings: they get the body without.",
        cases=(
            "request.coding.gzip_of_a_chat",
            "request.coding.br_of_a_chat",
            "request.coding.zstd_of_a_chat",
            "request.coding.deflate_of_a_chat",
        ),
        aspects=("reached_bodies", "reached_fields"),
    ),
    # --- requests: what the client sees
    Listed(
        why="100 may be left out where the body has come already, or where there is none (RFC 9110, 10.1.1).",
        cases=("request.expect.body_sent_at_once", "request.expect.without_body"),
        ours=SERVED,
        nginx="100 200 kept",
    ),
    # --- responses: stricter
    Listed(
        why="Two readers could take its framing, its lines or its status for different things. nginx guesses.",
        cases=(
            "response.framing.chunk_size_with_blanks",
            "response.framing.chunk_size_with_bare_lf",
            "response.broken.two_lengths",
            "response.broken.the_same_length_twice",
            "response.broken.list_of_lengths",
            "response.broken.negative_length",
            "response.broken.signed_length",
            "response.broken.length_not_a_number",
            "response.broken.length_and_coding",
            "response.broken.coding_gzip_then_chunked",
            "response.broken.coding_chunked_twice",
            "response.broken.coding_unknown",
            "response.fields.bare_lf",
            "response.fields.bare_lf_in_fields",
            "response.fields.no_colon",
            "response.fields.control_in_value",
        ),
        ours=BROKEN,
        nginx=SERVED,
    ),
    Listed(
        why="A status has three digits and begins with 1 to 5 or more. nginx sends to clients what they cannot read.",
        cases=("response.broken.status_not_a_number",),
        ours=BROKEN,
        nginx="2xx kept",
    ),
    Listed(why="The same.", cases=("response.broken.status_of_two_digits",), ours=BROKEN, nginx="20 kept"),
    Listed(why="The same.", cases=("response.broken.status_of_four_digits",), ours=BROKEN, nginx="2000 kept"),
    Listed(why="The same.", cases=("response.status.099",), ours=BROKEN, nginx="099 kept"),
    Listed(
        why="The head is held until the turn is over, so a body that is broken from the start becomes a clear error.",
        cases=("response.framing.chunk_size_not_a_number", "response.framing.chunk_longer_than_its_size"),
        ours=BROKEN,
        nginx="closed",
    ),
    Listed(
        why="No status line: to nginx it is HTTP/0.9, and the client gets bytes that are no response.",
        cases=("response.broken.nonsense",),
        ours=BROKEN,
        nginx="not HTTP closed",
    ),
    Listed(why="The same.", cases=("response.broken.http_0_9",), ours=BROKEN, nginx="silent"),
    # --- responses: interim
    Listed(
        why="Interim responses end here: servers of models mean nothing by them, and some clients take the first "
        "status for the last. This nginx takes it for the last itself, and the answer for its body.",
        cases=("response.interim.100", "response.interim.100_to_a_post"),
        ours=SERVED,
        nginx="100 200 kept",
    ),
    Listed(why="The same.", cases=("response.interim.102",), ours=SERVED, nginx="102 200 kept"),
    Listed(why="The same.", cases=("response.interim.103",), ours=SERVED, nginx="103 200 closed"),
    Listed(why="The same.", cases=("response.interim.100_and_103",), ours=SERVED, nginx="100 103 200 kept"),
    Listed(why="The same.", cases=("response.interim.199",), ours=SERVED, nginx="199 200 kept"),
    Listed(why="The same, and no answer came.", cases=("response.interim.100_alone",), ours=BROKEN, nginx="100 silent"),
    Listed(
        why="Nobody has asked the backend for another protocol.",
        cases=("response.interim.101_that_nobody_asked_for",),
        ours=BROKEN,
        nginx="101 silent",
    ),
    # --- responses: framing and fields
    Listed(
        why="A 204 has no length (RFC 9110, 8.6), and that of a 304 is of a body elsewhere: neither is passed on.",
        cases=("response.status.204_with_length_0", "response.status.304_with_length"),
        aspects=("framing",),
    ),
    Listed(
        why="The head of a HEAD response says how a GET would be framed (RFC 9110, 9.3.2); nginx leaves it out.",
        cases=("response.head.chunked", "response.head.unframed"),
        aspects=("framing",),
    ),
    Listed(
        why="For one hop: trailers are dropped on the way, connections and offers to upgrade are the backend's own.",
        cases=(
            "response.framing.trailer",
            "response.fields.hop_by_hop",
            "response.fields.connection_names_a_field",
            "response.fields.trailer_te_upgrade",
            "response.fields.proxy_authenticate",
        ),
        aspects=("fields",),
    ),
    Listed(
        why="Which pages may read an answer is said by the router's own settings.",
        cases=("response.fields.cors",),
        aspects=("fields",),
    ),
    Listed(
        why="Words of a backend to an nginx in front of the router; that nginx heeds and drops them.",
        cases=("response.fields.accel_fields",),
        aspects=("fields",),
    ),
    # --- responses that break off
    Listed(
        why="Inside a stream of events the client is told what happened before the transfer breaks.",
        cases=("response.coding.events_cut_off", "response.call.stream_cut_off"),
        aspects=("bodies",),
    ),
    Listed(
        why="The stream says by itself when it is over. It ended before, with a connection that may end for any "
        "reason: to the client that is no end.",
        cases=("response.call.stream_until_a_close_that_came_too_early",),
        ours="200 closed",
        nginx=SERVED,
    ),
)

DIFFERENCES: Final = {name: listed for listed in LISTED for name in listed.cases}
