"""Words and sentences of the made-up workloads. All written for this purpose."""

from __future__ import annotations

TOPICS = (
    "a heat pump in an old house", "the difference between two kinds of loans", "a sourdough that does not rise",
    "indexes in a relational database", "the rules of cricket", "learning to sail", "a noisy bearing on a bicycle",
    "how tides come about", "a letter to a landlord", "planting beans next to maize", "error budgets in operations",
    "the tax on a second job", "insulating a loft", "a recursive descent parser", "training for a half marathon",
    "the history of the postcard", "a garden pond in winter", "memory mapped files", "choosing a first telescope",
    "cooking rice for forty people", "the grammar of conditional sentences", "a good name for a small bakery",
    "backups for a home network", "why bridges hum in the wind", "reading an electricity bill", "git rebase",
    "a wedding speech for a sister", "the smell after rain", "growing mushrooms in a cellar", "unit tests for dates",
    "a week in the Dolomites with children", "how a lock on a canal works", "the mood in minor keys",
)  # fmt: skip

QUESTIONS = (
    "Can you explain {topic} to me as if I had never heard of it?",
    "I am stuck with {topic}. What would you look at first?",
    "What do most people get wrong about {topic}?",
    "Give me three ideas about {topic}, with one sentence each.",
    "Is it worth the trouble to read more on {topic}, and where would you begin?",
    "Write me a short and friendly text about {topic}.",
    "My neighbour says that {topic} is simple. Is that true?",
    "hey, quick one: {topic}?",
    "Could you go through {topic} with me step by step, please?",
    "What does {topic} have to do with the weather, if anything?",
    "Rewrite this so that it sounds less stiff: I herewith inform you about {topic}.",
    "How long does {topic} usually take, and what does it cost?",
)

SMALL_TALK = (
    "I tried it last weekend and it went wrong halfway.",
    "We have about two hundred in the budget, maybe a little more.",
    "Please keep in mind that I have no tools apart from a screwdriver.",
    "I would rather not do anything that cannot be undone.",
    "My daughter asked me and I did not know what to say.",
    "The manual has only pictures and they do not help.",
    "I have read two articles, and they say the opposite of each other.",
    "It used to work until we moved here in spring.",
    "Sorry if that is a silly question.",
    "There is a photo somewhere but I cannot find it at the moment.",
    "A friend recommended the expensive way, of course.",
    "I only need the gist, the details can wait until tomorrow.",
)

REPLIES = (
    "Happy to help. The short answer is that it depends on how much time you have.",
    "Let us take it in order. First look at what you already own, then at what is missing.",
    "There are two schools here, and both have a point.",
    "In most cases the simplest remedy is the right one, so begin with that.",
    "A small test will tell you more than any table: try one piece and wait a day.",
    "If it happens again, write down what came before, because the cause is rarely where it hurts.",
    "You can skip this step when the weather is dry.",
    "That is a fair question, and the honest answer is that nobody measured it well.",
)

FOLLOW_UPS = (
    "ok, and what if I do not have that?", "That makes sense. How sure are you about the second point?",
    "Thanks! One more thing: how do I explain it to my parents?", "Could you make it shorter?",
    "And the other way round?", "Hm, that did not work. It still does the same.", "Give me an example please",
    "Which of these would you pick yourself?", "Can you put that in a table?", "go on",
)  # fmt: skip

PRODUCTS = (
    "folding ladder", "desk lamp", "rain jacket", "espresso grinder", "camping stove", "office chair", "cable drum",
    "paint roller", "garden hose", "label printer", "bench vice", "water filter", "bread knife", "storage box",
)  # fmt: skip

FACTS = (
    "The parcel from {city} arrived {days} days late and the box had been opened once.",
    "Customer {number} writes that the {product} was ordered in {colour} but came in another colour.",
    "Our records show a payment of {amount} on the same day, which was booked to account {number}.",
    "The {product} has been in use since {month} and was cleaned twice according to the log.",
    "A technician measured {amount} millimetres at the joint and found no play in the axle.",
    "The second delivery of {days} pieces is planned for {month}; the forwarder in {city} has confirmed it.",
    "In the note of {month} it says that the {product} may be exchanged without a fee.",
    "The storehouse in {city} counted {number} units, the system says {amount}.",
    "No reply has come to the letter of the {days}th, though the address in {city} is right.",
    "The serial number ends with {number}; the plate on the back is hard to read.",
    "According to the terms a refund of {amount} is possible if the {product} comes back within {days} days.",
    "The caller was polite, spoke of {days} earlier tickets and asked for somebody from the {city} office.",
)
CITIES = ("Lund", "Graz", "Porto", "Ghent", "Turku", "Basel", "Brno", "Cork", "Delft", "Vigo", "Kaunas", "Aarhus")
MONTHS = ("January", "March", "April", "June", "August", "October", "December")
COLOURS = ("grey", "dark green", "sand", "blue", "off-white", "signal red")

JOBS = (
    (
        "You classify service tickets of a mail-order company. Read the ticket and return a JSON object with the keys "
        "category (delivery, damage, payment, question or other), urgency (1 to 5), product, city, sentiment and a "
        "summary of at most 25 words. Use null for what the ticket does not say. Do not add other keys, do not "
        "explain your choice, and do not translate names. If several products are named, take the one that the "
        "complaint is about."
    ),
    (
        "Extract every measurement from the report below. For each one give the value, the unit, what was measured "
        "and the sentence that it comes from. Return a JSON list, ordered as in the report. Ignore dates and phone "
        "numbers. Values given in words count as well. Give decimal points, not commas, and keep the unit as it is "
        "written. Where the same thing was measured twice, list both. An empty list is a valid answer."
    ),
    (
        "Summarise the following case file for an archive. Five sentences, plain language, no names of persons. "
        "Begin with what happened, then what was done, then what is open. The reader has never seen the file, so "
        "explain what a shortcut stands for when it comes first, and leave out greetings, signatures and numbers of "
        "accounts. Do not judge who was right."
    ),
)  # fmt: skip

TASKS = (
    "Find out why order {number} was charged twice and correct it.",
    "Make the failing test in the billing module pass without changing its interface.",
    "Book the cheapest connection from {city} that arrives before noon, and put it in the calendar.",
    "Collect the figures for the {month} report and write them into the sheet.",
    "Move the {product} listings that have been out of stock for {days} days to the archive.",
    "Look for the setting that limits uploads and raise it to {amount} megabytes.",
)

TOOLS = (
    ("search_orders", "Find orders by customer, date or state.", ("customer", "from_date", "state")),
    ("read_file", "Read a file of the project, or some lines of it.", ("path", "first_line", "last_line")),
    ("run_command", "Run a command in the sandbox and return what it printed.", ("command", "timeout")),
    ("update_record", "Change fields of one record.", ("record", "fields")),
    ("list_directory", "List the names in a folder.", ("path",)),
    ("query_table", "Run a read-only query.", ("sql", "limit")),
)

AGENT_SYSTEM = (
    "You are an assistant that works with tools until the task is done. Think about what is missing, call one tool at "
    "a time and look at its result before you go on. Never invent identifiers. When nothing is left to do, say in two "
    "sentences what you did."
)

CHAT_SYSTEMS = (
    "",
    "You are a helpful assistant.",
    "You are a friendly assistant in a group chat. Answer briefly, in the language of the question, and admit it when "
    "you do not know.",
    "Du bist ein freundlicher Assistent. Antworte knapp.",
)

CODE = (
    "def {name}(rows, limit={days}):\n    kept = [row for row in rows if row.total > {amount}]\n    return kept\n",
    "class {name}Store:\n    def __init__(self, path):\n        self.path = path\n        self.rows = {{}}\n",
    "assert {name}([]) == [], 'an empty list stays empty'\n",
    "for index, row in enumerate(load('{name}.csv')):\n    if row['state'] == 'open':\n        report(index, row)\n",
    'Traceback (most recent call last):\n  File "{name}.py", line {days}, in main\nValueError: {number} is missing\n',
    "-rw-r--r-- 1 build build {number} {month} {days} 10:4{days} {name}.py\n",
    '{{"id": {number}, "state": "open", "city": "{city}", "total": {amount}}}\n',
)
NAMES = ("invoice", "ledger", "parcel", "reader", "session", "billing", "archive", "upload", "carrier", "ticket")
