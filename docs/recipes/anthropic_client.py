"""The `anthropic` package: the same two places for headers."""

import os
import uuid

import anthropic

client = anthropic.Anthropic(
    base_url=os.environ["TWOLANE_URL"],
    api_key=os.environ.get("TWOLANE_KEY", "none"),
    default_headers={"x-twolane-pipeline": str(uuid.uuid4()), "x-twolane-deadline-ms": "20000"},
)


def ask(text: str, hop: str) -> str:
    answer = client.messages.create(
        model="chat",
        max_tokens=16,
        messages=[{"role": "user", "content": text}],
        extra_headers={"x-twolane-hop": hop},
    )
    return "".join(block.text for block in answer.content if block.type == "text")


plan = ask("Plan the task.", "internal")
print(ask(f"Do this: {plan}", "final"))
