"""Words that tell what kind of program wrote a prompt, in groups. Found as whole words, in a few languages.

A group is a reason that a person would accept: who speaks of `tools` and a `step` drives an agent, who demands
`JSON only` reads the answer by program, who writes `please` and `my` is a person. Names of products, benchmarks and
models are left out on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

GROUPS: Final[Mapping[str, str]] = {
    "person": (
        "i i'm i'd i've i'll im my me mine myself we our us ich mir mich mein meine meinen wir unser je j'ai mon ma mes"
        " moi nous yo mi mis me eu meu minha io mio mia ik mijn я мне мой мы"
    ),
    "courtesy": (
        "please hi hello hey thanks thank sorry pls plz okay ok yes yeah no bitte hallo danke bonjour merci salut hola"
        " gracias obrigado ciao grazie dank bedankt привет спасибо пожалуйста"
    ),
    "question": (
        "what what's how why who where when which whose can could would should does did is are was were do will"
        " was wie warum wer wo wann welche kann kannst que qu'est comment pourquoi où quand quel quelle qué cómo quién"
        " dónde cuándo como quem onde cosa come perché что как почему кто где когда wat hoe waarom"
    ),
    "wish": (
        "want need like love tell show give help explain describe suggest recommend write create make find book play"
        " add set buy order looking think know learn understand advice tips idea ideas story poem recipe joke imagine"
        " möchte brauche erkläre schreibe hilf zeig aide explique écris donne quiero necesito ayuda explica escribe"
        " dame"
    ),
    "label": (
        "classify classification label labels labelled labeled categorize categorise category categories tag tags"
        " sentiment intent topic topics rate score scores rating rank detect identify determine flag decide assign"
        " annotate positive negative neutral urgency severity priority spam toxic klassifiziere bewerte classifie"
        " étiquette clasifica etiqueta"
    ),
    "rewrite": (
        "summarise summarize summary tldr translate translation paraphrase rewrite rephrase extract extraction"
        " keywords phrases convert anonymise anonymize redact normalise normalize dedupe"
        " zusammenfassen übersetze extrahiere résume traduis extrais resume traduce extrae"
    ),
    "format": (
        "json only output outputs format exactly strictly strict comma separated csv xml yaml schema digit integer"
        " number numbered bullet line lines letter word words sentence sentences field fields keys key value values"
        " preamble nothing else verbatim plain delimiter tags brackets one nur ausgabe genau seulement"
        " uniquement sortie solo solamente salida exactamente"
    ),
    "record": (
        "review ticket abstract transcript article passage paragraph message messages call document documents record"
        " records item items section text title context information reference tweet post comment email page product"
        " customer user's input description sample entry row following below above given provided"
    ),
    "exam": (
        "correct answer answers question questions options option choices choice choose solve problem problems tests"
        " test pass grade judge evaluate evaluation benchmark true false final reasoning boxed multiple solution"
        " explanation q a compare better winner best quality criteria rubric premise hypothesis entailment"
        " experiment frage antwort réponse pregunta respuesta"
    ),
    "agent": (
        "agent agents tool tools function functions step steps action actions thought thoughts observation observations"
        " execute executes executed command commands shell bash sql terminal environment task tasks goal subtask"
        " workspace submit plan planner plans next interact interleaving calls arguments parameters api apis"
        " round rounds trajectory attempt attempts finish search browser workflow pipeline orchestrator autonomous"
        " result werkzeug werkzeuge outil outils herramienta herramientas"
    ),
    "persona": (
        "helpful friendly assistant companion chatbot bot support voice spoken aloud chat tutor concise brief warm"
        " witty polite respectful honest knowledgeable conversation reply replies answer answers customer customers"
        " student app markdown emojis emoji whatsapp phone speak friend coach teacher character role short"
        " hilfsbereiter assistent freundlicher utile asistente útil amable"
    ),
    "reader": ("viewer waits waiting reader screen stream streams streaming progressively partial sidebar side live"),
    "coding": (
        "code function program script class method complete completion cursor autocomplete editor snippet python"
        " javascript java c++ c# rust go html css sql bug error compile implement refactor fill missing prefix suffix"
    ),
    "order": (
        "answer read return output reply respond complete solve score compare assign list write implement fill give"
        " extract does did is are count count check grade judge evaluate please generate produce tl dr using based put"
        " answers task instruction instructions given beantworte lies réponds lis responde lee rate rank convert find"
        " what which who in"
    ),
    "demand": (
        "only exactly json strictly one single digit comma nothing without no explanation explanations preamble"
        " yes/no integer following format output return reply each separated per a-z either or words letter max most"
    ),
}
"""Words of each group, separated by spaces. A word may stand in several groups."""

NAMES: Final = tuple(GROUPS)
GROUP: Final[Mapping[str, int]] = {name: place for place, name in enumerate(NAMES)}
"""The place of a group in `NAMES`."""

_SETS: Final = {name: frozenset(words.split()) for name, words in GROUPS.items()}
TASKS: Final = _SETS["label"] | _SETS["rewrite"] | _SETS["order"]
"""With these, instructions to a machine begin."""

_PACKED: Final[Mapping[bytes, int]] = {
    word.encode(): sum(1 << 8 * place for place, words in enumerate(_SETS.values()) if word in words)
    for word in frozenset().union(*_SETS.values())
}
"""Each word as one number with a byte for each group, so that counting is adding."""
_KNOWN: Final = frozenset(_PACKED)
_packed: Final = _PACKED.__getitem__

_LETTERS: Final = bytes(
    byte if byte >= 0x80 or chr(byte).isalnum() or chr(byte) in "'+#" else 0x20 for byte in range(256)
)
"""Other marks become spaces, so that words stand apart."""
_SMALL_LETTERS: Final = _LETTERS.translate(bytes(range(256)).lower())
"""The same, and capitals of ASCII become small letters."""
_AROUND: Final = "\"'`*_.,:;!?()[]{}<>#-"
"""What stands around a word that is looked at by itself."""

_MOST_CHARS: Final = 1600
"""No group has 256 words, so that no byte overflows; more text would only take longer."""

_GROUPS: Final = len(NAMES)
NONE: Final = (0,) * _GROUPS


def count(text: str) -> Sequence[int]:
    """How many different words of each group are in `text`, in the order of `NAMES`."""
    text = text[:_MOST_CHARS]
    if text.isascii():
        words = text.encode("ascii").translate(_SMALL_LETTERS).split()
    else:
        words = text.lower().encode("utf-8", "replace").translate(_LETTERS).split()
    known = _KNOWN.intersection(words)
    return tuple(sum(map(_packed, known)).to_bytes(_GROUPS, "little")) if known else NONE


def first_word(text: str) -> str:
    """In small letters, without the marks around it; empty where there is none."""
    words = text[:40].split(None, 1)
    return words[0].lower().strip(_AROUND) if words else ""


def words_of(group: str) -> frozenset[str]:
    """All words of one group."""
    return _SETS[group]
