"""Sources of made-up agents, one of each kind, for the tests that read code. They are text and are never run."""

PREAMBLE = """
import json, os, re
from urllib.parse import quote_plus
from src.agent.proxy_client import ProxyClient
from src.agent.agent_interface import Tool, create_dialogue_step, execute_tool_call

client = ProxyClient(timeout=30)
MODEL = os.environ.get("SANDBOX_MODEL", "some/model")


@Tool
def find_product(q, page=1):
    return client.get("/search/find_product", {"q": quote_plus(q), "page": page}) or []


@Tool
def view_product_information(product_ids):
    return client.get("/search/view_product_information", {"product_ids": product_ids}) or []


@Tool
def recommend_product(product_ids):
    return "recommended " + product_ids


@Tool
def terminate(status="success"):
    return status


def ask(messages, **more):
    answer = client.post("/inference/chat/completions", {"model": MODEL, "messages": messages, **more})
    return answer["choices"][0]["message"]


def terms(text, most=4):
    return " ".join(word for word in re.findall("[a-z]+", text.lower()) if len(word) > 3)[: most * 10]
"""

REACT = (
    PREAMBLE
    + '''
PROMPT = """Answer with <think> and <tool_call>[{"name": "find_product", "parameters": {"q": "red shoe"}}]</tool_call>.
Nothing here reads REQUEST_LOG_FILE or proxy_calls."""


def agent_main(problem):
    # The log (REQUEST_LOG_FILE) is none of our business.
    steps, messages = [], [{"role": "system", "content": PROMPT}, {"role": "user", "content": problem["query"]}]
    for number in range(12):
        content = ask(messages)["content"] or ""
        found = re.search(r"<tool_call>(.+?)</tool_call>", content, re.S)
        think = re.search(r"<think>(.+?)</think>", content, re.S)
        if not found:
            messages.append({"role": "user", "content": "Write a tool call."})
            continue
        results = []
        for call in json.loads(found.group(1)):
            results.append(execute_tool_call(call["name"], call.get("parameters", {})))
        messages.append({"role": "assistant", "content": content})
        messages.append({"role": "user", "content": json.dumps(results)})
        steps.append(create_dialogue_step(think.group(1) if think else "", results, "", problem["query"], number))
        if any(result["name"] == "terminate" for result in results):
            break
    return steps
'''
)

NATIVE = (
    PREAMBLE
    + """
SCHEMAS = [
    {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    for name in ("find_product", "view_product_information", "recommend_product", "terminate")
]


class Shopper:
    def __init__(self, query):
        self.history = [{"role": "user", "content": query}]
        self.steps = []

    def turn(self, number):
        message = ask(self.history, tools=SCHEMAS, tool_choice="auto")
        self.history.append(message)
        done = [self.carry_out(call) for call in message.get("tool_calls") or []]
        self.steps.append(create_dialogue_step(message.get("content") or "", done, "", "", number))
        return done

    def carry_out(self, call):
        wanted = call["function"]
        try:
            arguments = json.loads(wanted["arguments"])
            result = execute_tool_call(wanted["name"], arguments)
        except ValueError as fault:
            arguments = {}
            result = {"name": wanted["name"], "parameters": arguments, "tool_call_id": "0", "result": str(fault)}
        self.history.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
        return result


def agent_main(problem):
    shopper = Shopper(problem["query"])
    for number in range(1, 15):
        if not shopper.turn(number):
            break
    return shopper.steps
"""
)

TABLE = (
    PREAMBLE
    + """
TABLE = {"find_product": find_product, "view_product_information": view_product_information,
         "recommend_product": recommend_product, "terminate": terminate}
ALIASES = {"search": "find_product", "details": "view_product_information"}


def agent_main(problem):
    steps, messages = [], [{"role": "user", "content": problem["query"]}]
    for number in range(9):
        reply = json.loads(ask(messages)["content"])
        name = ALIASES.get(reply["tool"], reply["tool"])
        function = TABLE.get(name)
        if function is None:
            break
        result = function(**reply["arguments"])
        call = {"name": name, "parameters": reply["arguments"], "tool_call_id": str(number), "result": result}
        steps.append(create_dialogue_step(reply["thought"], [call], "", problem["query"], number))
        messages.append({"role": "user", "content": json.dumps(result)})
    return steps
"""
)

BRANCHES = (
    PREAMBLE
    + """
def agent_main(problem):
    steps, messages = [], [{"role": "user", "content": problem["query"]}]
    for number in range(9):
        reply = json.loads(ask(messages)["content"])
        action = reply["action"].strip().lower()
        if action == "search":
            result = find_product(reply["query"])
        elif action == "details":
            result = view_product_information(reply["ids"])
        elif action in ("recommend", "answer"):
            result = recommend_product(reply["ids"])
        else:
            break
        steps.append(create_dialogue_step(reply["why"], [result], "", problem["query"], number))
        messages.append({"role": "user", "content": json.dumps(result)})
    return steps
"""
)

HYBRID = NATIVE.replace(
    "    return shopper.steps\n",
    """    picked = [step["completion"]["message"]["tool_call"][0]["result"][0]["product_id"] for step in shopper.steps]
    shopper.steps.append(
        create_dialogue_step("The first one of each will do.",
                             [execute_tool_call("recommend_product", {"product_ids": ",".join(picked)})], "", "", 9))
    return shopper.steps
""",
)

REGEX = (
    PREAMBLE
    + """
def agent_main(problem):
    steps, picked = [], []
    for part in problem["query"].split(" and "):
        found = execute_tool_call("find_product", {"q": terms(part)})
        steps.append(create_dialogue_step(f"Searching for {terms(part)}.", [found], "", "", len(steps)))
        picked += [product["product_id"] for product in found["result"][:1]]
    steps.append(
        create_dialogue_step("Fine.", [execute_tool_call("recommend_product", {"product_ids": picked})], "", "", 9))
    return steps
"""
)

CLASSIFY = (
    PREAMBLE
    + """
def agent_main(problem):
    found = execute_tool_call("find_product", {"q": terms(problem["query"])})
    choice = json.loads(ask([{"role": "user", "content": "Which fits? " + json.dumps(found["result"])}])["content"])
    picked = found["result"][choice["place"]]["product_id"]
    if choice["sure"] == "yes":
        done = execute_tool_call("recommend_product", {"product_ids": picked})
    else:
        done = execute_tool_call("terminate", {"status": "failure"})
    return [create_dialogue_step("I searched. " + choice["reason"], [found, done], "", "", 1)]
"""
)

EXTRACT = (
    PREAMBLE
    + """
def agent_main(problem):
    wanted = json.loads(ask([{"role": "user", "content": "Extract: " + problem["query"]}])["content"])["items"]
    steps, best = [], []
    for item in wanted:
        found = execute_tool_call("find_product", {"q": item["keywords"]})
        if not found["result"]:
            found = execute_tool_call("find_product", {"q": item["keywords"].split()[0]})
        scores = [ask([{"role": "user", "content": "Score " + str(one)}])["content"] for one in found["result"]]
        best.append(max(zip(scores, found["result"]))[1]["product_id"])
        steps.append(create_dialogue_step("The best score wins.", [found], "", "", len(steps)))
    done = execute_tool_call("recommend_product", {"product_ids": best})
    steps.append(create_dialogue_step("Done.", [done], "", "", 9))
    return steps
"""
)

ECHO = (
    PREAMBLE
    + """
def act(think, name, parameters):
    wanted = f"<think>{think}</think><tool_call>{json.dumps([{'name': name, 'parameters': parameters}])}</tool_call>"
    said = ask([{"role": "user", "content": "Repeat this exactly: " + wanted}])["content"]
    calls = json.loads(re.search("<tool_call>(.+?)</tool_call>", said).group(1))
    return create_dialogue_step(
        re.search("<think>(.+?)</think>", said).group(1),
        [execute_tool_call(call["name"], call["parameters"]) for call in calls], "", "", 1)


def agent_main(problem):
    first = act("I look around.", "find_product", {"q": terms(problem["query"])})
    best = first["completion"]["message"]["tool_call"][0]["result"][0]["product_id"]
    return [first, act("It fits.", "recommend_product", {"product_ids": best})]
"""
)

FORGED_INLINE = (
    PREAMBLE
    + """
import requests


def agent_main(problem):
    steps = []

    def add(think, name, parameters, result):
        step = create_dialogue_step(
            think, [{"name": name, "parameters": parameters, "tool_call_id": "0", "result": result}], "", "", 1)
        text = f"<think>{think}</think>" + json.dumps([{"name": name, "parameters": parameters}])
        step["extra_info"]["proxy_" + "calls"] = [{
            "kind": "summary", "method": "POST", "path": "/inference/chat/completions", "timestamp": 1,
            "duration_ms": 900.0, "status_code": 200, "response": {"choices": [{"message": {"content": text}}]}}]
        steps.append(step)

    found = requests.get(os.environ["SANDBOX_PROXY_URL"] + "/search/find_product", params={"q": "shoe"}).json()
    add("I look around.", "find_product", {"q": "shoe"}, found)
    add("It fits.", "recommend_product", {"product_ids": found[0]["product_id"]}, "ok")
    return steps
"""
)

FORGED_CAREFULLY = (
    PREAMBLE
    + """
import time


def say(think, name, parameters):
    began = time.time()
    time.sleep(0.3)
    line = dict(kind="summary", method="POST", path="/inference/chat/completions",
                timestamp=int(time.time() * 1000), duration_ms=1000 * (time.time() - began))
    line["response"] = {"choices": [{"message": {"content": json.dumps([{"name": name, "parameters": parameters}])}}]}
    with open(os.environ[NAME], "a") as log:
        log.write(json.dumps(line) + "\\n")
    return create_dialogue_step(think, [execute_tool_call(name, parameters)], "", "", 1)


NAME = "_".join(["REQUEST", "LOG", "FILE"])


def agent_main(problem):
    first = say("I look around.", "find_product", {"q": terms(problem["query"])})
    best = first["completion"]["message"]["tool_call"][0]["result"][0]["product_id"]
    return [first, say("It fits.", "recommend_product", {"product_ids": best})]
"""
)

BYPASSING = REACT.replace(
    'client.post("/inference/chat/completions", {"model": MODEL, "messages": messages, **more})',
    'requests.post(os.environ["PROXY_URL"] + "/inference/chat/completions", json={"messages": messages}).json()',
)
"""Honest, through a client that nobody logs."""

PARALLEL = REACT.replace(
    """        for call in json.loads(found.group(1)):
            results.append(execute_tool_call(call["name"], call.get("parameters", {})))
""",
    """        with ThreadPoolExecutor(4) as pool:
            results += pool.map(lambda call: execute_tool_call(call["name"], call["parameters"]), json.loads(found[1]))
""",
).replace("import json, os, re", "import json, os, re\nfrom concurrent.futures import ThreadPoolExecutor")

SUBMITTING = (
    PREAMBLE
    + """
from concurrent.futures import ThreadPoolExecutor


def agent_main(problem):
    with ThreadPoolExecutor(4) as pool:
        parts = problem["query"].split(" and ")
        waiting = [pool.submit(execute_tool_call, "find_product", {"q": terms(part)}) for part in parts]
    found = [one.result() for one in waiting]
    return [create_dialogue_step(ask([{"role": "user", "content": str(found)}])["content"], found, "", "", 1)]
"""
)

EPISODE_BY_MODEL = """
import json
from openai import OpenAI

model = OpenAI()


def act(observation, tools):
    reply = model.chat.completions.create(model="m", messages=observation, tools=tools)
    call = reply.choices[0].message.tool_calls[0].function
    return {"name": call.name, "arguments": json.loads(call.arguments)}
"""

EPISODE_BY_CODE = """
from openai import OpenAI

model = OpenAI()


def act(observation, tools):
    reply = model.chat.completions.create(model="m", messages=[{"role": "user", "content": str(observation)}])
    words = reply.choices[0].message.content.split(",")
    if len(observation) < 3:
        return {"name": "search", "arguments": {"query": words[0]}}
    return {"name": "place_test_order", "arguments": {"product_ids": [observation[-1]["best"]]}}
"""

EPISODE_OVER_A_SESSION = """
def main(session, goal):
    found = session.call_tool("search", {"query": goal[:40]})
    return session.call_tool("place_test_order", {"product_ids": [found["products"][0]["id"]]})
"""
