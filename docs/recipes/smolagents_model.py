"""`smolagents`: an agent makes all its calls through one model, whose client sends the headers of the task."""

import os
import uuid

from smolagents import OpenAIServerModel


def model_for(task_id: str) -> OpenAIServerModel:
    """One for each task; an agent is given it as its `model`."""
    return OpenAIServerModel(
        model_id="chat",
        api_base=os.environ["TWOLANE_URL"] + "/v1",
        api_key=os.environ.get("TWOLANE_KEY", "none"),
        client_kwargs={"default_headers": {"x-twolane-pipeline": task_id, "x-twolane-deadline-ms": "20000"}},
        max_tokens=16,
    )


model = model_for(str(uuid.uuid4()))
history = [{"role": "user", "content": "Plan the task."}]
step = model.generate(history)
history += [{"role": "assistant", "content": step.content or "-"}, {"role": "user", "content": "Observation: done."}]
print(model.generate(history).content)
