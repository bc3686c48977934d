"""The LiteLLM SDK: `extra_headers` of each call."""

import os
import uuid

import litellm

task = {"x-twolane-pipeline": str(uuid.uuid4()), "x-twolane-deadline-ms": "20000"}


def ask(text: str, hop: str) -> str:
    answer = litellm.completion(
        model="openai/chat",
        api_base=os.environ["TWOLANE_URL"] + "/v1",
        api_key=os.environ.get("TWOLANE_KEY", "none"),
        messages=[{"role": "user", "content": text}],
        max_tokens=16,
        extra_headers={**task, "x-twolane-hop": hop},
    )
    return answer.choices[0].message.content


plan = ask("Plan the task.", "internal")
print(ask(f"Do this: {plan}", "final"))
