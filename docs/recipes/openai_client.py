"""The `openai` package: what belongs to the whole task in default headers, what belongs to one hop in extra headers."""

import os
import uuid

import openai

base = openai.OpenAI(base_url=os.environ["TWOLANE_URL"] + "/v1", api_key=os.environ.get("TWOLANE_KEY", "none"))
task = base.with_options(default_headers={"x-twolane-pipeline": str(uuid.uuid4()), "x-twolane-deadline-ms": "20000"})


def ask(text: str, *, final: bool = False, left: int = 0, stream: bool = False):
    hop = {"x-twolane-hop": "final" if final else "internal", "x-twolane-hops-left": str(left)}
    return task.chat.completions.create(
        model="chat",
        messages=[{"role": "user", "content": text}],
        max_tokens=16,
        stream=stream,
        extra_headers=hop,
    )


plan = ask("Plan the task.", left=2).choices[0].message.content
found = ask(f"Do this: {plan}", left=1).choices[0].message.content
for chunk in ask(f"Answer from this: {found}", final=True, stream=True):
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
