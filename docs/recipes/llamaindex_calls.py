"""`llama-index`: `OpenAILike` takes default headers, and each call takes extra ones."""

import os
import uuid

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(
    model="chat",
    api_base=os.environ["TWOLANE_URL"] + "/v1",
    api_key=os.environ.get("TWOLANE_KEY", "none"),
    is_chat_model=True,
    max_tokens=16,
    default_headers={"x-twolane-pipeline": str(uuid.uuid4()), "x-twolane-deadline-ms": "20000"},
)
plan = llm.chat([ChatMessage(role="user", content="Plan the task.")], extra_headers={"x-twolane-hop": "internal"})
question = ChatMessage(role="user", content=f"Do this: {plan.message.content}")
print(llm.chat([question], extra_headers={"x-twolane-hop": "final"}).message.content)
