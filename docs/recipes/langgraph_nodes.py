"""`langgraph` with `langchain-openai`: each node binds the headers of its hop to the one model."""

import os
import uuid
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

model = ChatOpenAI(
    model="chat",
    base_url=os.environ["TWOLANE_URL"] + "/v1",
    api_key=os.environ.get("TWOLANE_KEY", "none"),
    max_tokens=16,
)


class State(TypedDict):
    task_id: str
    text: str


def hop(state: State, *, final: bool = False, left: int = 0):
    """The model, for one node."""
    return model.bind(
        extra_headers={
            "x-twolane-pipeline": state["task_id"],
            "x-twolane-deadline-ms": "20000",
            "x-twolane-hop": "final" if final else "internal",
            "x-twolane-hops-left": str(left),
        }
    )


def plan(state: State):
    return {"text": hop(state, left=2).invoke("Plan the task.").text}


def work(state: State):
    return {"text": hop(state, left=1).invoke(f"Do this: {state['text']}").text}


def answer(state: State):
    return {"text": "".join(chunk.text for chunk in hop(state, final=True).stream(f"Answer: {state['text']}"))}


graph = StateGraph(State)
graph.add_node("plan", plan)
graph.add_node("work", work)
graph.add_node("answer", answer)
graph.add_edge(START, "plan")
graph.add_edge("plan", "work")
graph.add_edge("work", "answer")
graph.add_edge("answer", END)
print(graph.compile().invoke({"task_id": str(uuid.uuid4()), "text": ""})["text"])
