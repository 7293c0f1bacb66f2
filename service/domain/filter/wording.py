"""What the names in a verdict mean, for people who check one. Decides nothing and knows no trajectory."""

from collections.abc import Mapping

WHY_ISSUER: Mapping[str, str] = {
    "reply_holds_call": "a logged reply holds this call",
    "after_terminate": "it comes after the agent had ended the conversation",
    "no_inference_log": "this format holds no log of replies",
    "count_unknown": "nobody reported how many replies there were, so one may be missing from the log",
    "count_differs": "the log holds another number of replies than were reported",
    "client_bypassed": "results are shown of searches that the client did not log, so replies may be missing too",
    "reply_dropped": "the log dropped a reply that came before, and it could hold this call",
    "reply_unread": "a reply seems to hold a call of this name that cannot be read",
    "reply_says_otherwise": "a reply asks for the same values under other names, which code may have translated",
    "reply_mentions_call": "a reply names this tool and these arguments in a form that is no call",
    "log_whole_no_reply": "the log is whole, and no reply in it holds this call",
    "log_unread": "lines of the log could not be read, and one of them could hold this call",
    "code_runs_replies": "the released code takes every call out of a reply",
    "code_calls_tools": "the released code calls the tools itself",
    "think_verbatim": "this text stands in a logged reply",
    "think_near_verbatim": "this text stands in a logged reply, white space and escapes aside",
    "think_not_said": "the log is whole, and no reply in it says this",
    "think_unknown": "a reply that may have said this is missing from the log",
}

WHY_CLASS: Mapping[str, str] = {
    "agentic": "the model issued every call",
    "mixed": "the model issued some of the calls, code the others",
    "sub_task": "code issued the calls; the model was asked for something else",
    "scripted": "code issued the calls, and no model was asked",
    "echoed": "replies hold the calls, but their prompts were too small to have decided them",
    "forged": "the evidence contradicts itself",
    "unknown": "the evidence does not say who issued some of the calls",
    "none": "nothing happened",
}

WHY_TRUST: Mapping[str, str] = {
    "witnessed": "the validator's own log shows the same requests",
    "claimed": "nothing disagrees, but all of it was written inside the agent's own process",
    "contradicted": "two pieces of the evidence cannot both be true",
}

WHY_CONTRADICTED: Mapping[str, str] = {
    "inference_count": "the log holds another number of replies than were reported",
    "execution_time": "the payload and the report state different execution times",
    "log_outlasts_execution": "the log spans more time than the execution took",
    "searches_not_logged": "replies were logged, and none of the searches whose results are shown",
    "result_not_logged": "a search's logged result lacks products that are shown as its result",
    "reply_size": "a reply is longer than its reported tokens can spell",
    "reply_not_served": "the validator's proxy served no such request to a model",
    "search_not_served": "the validator's proxy served no such search",
    "served_size": "the validator's proxy served such a request with a reply of another size",
    "release_not_scored": "what the validator's sandbox wrote and scored is not what was released",
    "report_not_scored": "what the validator's sandbox stated of the run is not what was reported",
    "result_not_replayed": "the same search gives other products than are shown or logged",
    "code_touches_log": "the released code names files or fields of the log, which are not its to write",
    "code_asks_no_model": "replies are logged, and the released code calls the tools itself and asks no model",
}

WHY_UNSUPPORTED: Mapping[str, str] = {
    "count": "nobody reported how many replies there were",
    "usage": "a reply states no token counts",
    "searches": "results are shown of which no search was logged",
    "prompt_size": "a prompt had no room for the query and the results before it",
    "prompt_growth": "the prompts did not grow with the results",
    "whole_log": "lines of the log could not be read",
}

WHY_REASON: Mapping[str, str] = {
    "kept": "no gate failed",
    "empty": "there are no steps",
    "malformed": "the payload cannot be read as what it should be",
    "oversized": "there is more in it than any agent does",
    "bare_nan": "the payload holds a number that JSON does not know",
    "invalidated": "SN15 voided the item: it was skipped or cancelled, or the episode was an exploit or a leak",
    "harness_fault": "the environment or the verifier failed, not the agent",
    "unpaired_call": "a call has no result",
    "recommend_count": "the agent did not settle on products exactly once",
    "unparseable_arguments": "the answer names no product that can be read",
    "token_budget": "the rendered chat has more tokens than the budget",
    "think_then_stop": "the last step neither answers nor ends the conversation",
    "no_terminal_action": "the conversation was not ended as the rules ask",
    "unjudged": "SN15 said neither success nor failure",
    "not_successful": "SN15 judged it a failure",
    "reasoning_low": "SN15's judge scored the reasoning below the floor",
    "reasoning_unjudged": "SN15's judge did not score the reasoning",
    "class_mixed": "code issued some of the calls",
    "class_sub_task": "code issued the calls",
    "class_scripted": "code issued the calls, and no model was asked",
    "class_echoed": "the model was asked to repeat what code had chosen",
    "class_unknown": "the evidence does not say who issued the calls",
    "contradicted": "the evidence contradicts itself",
    "unsupported": "positive evidence is missing",
    "loop": "the same call was made again and again",
    "over_recommend": "the answer names more products than were asked for",
    "ungrounded_id": "a product was named that no earlier result had shown",
    "defective_format": "a step or a call is not written as it should be",
    "judge_failed": "the filter itself failed on it, which is a fault of Sluice",
}


WHAT_GATE: Mapping[str, str] = {
    "readable": "it can be read, and something was done",
    "invalidated": "SN15 has not taken its word on the item back",
    "harness": "the environment and the verifier of an episode worked",
    "pairing": "every call has a result",
    "answer_count": "the agent settled on products exactly once; an episode may be declined",
    "arguments": "the answer names products that can be read, as text or as a list",
    "ending": "the last step answers or ends the conversation",
    "terminate": "the conversation was ended by a call of its own",
    "episode_end": "the episode ended by a decision of the agent's",
    "success": "SN15 judged it a success",
    "reasoning": "SN15's judge scored the reasoning high enough",
    "class": "the model issued every call",
    "support": "positive evidence stands behind it: counts, usage, searches, prompt sizes",
    "loop": "no call was made again and again",
    "over_recommend": "the answer names no more products than were asked for",
    "grounded": "every product named was shown before, or is in the query",
    "format": "every step and call is written as it should be",
    "budget": "the rendered chat is within the tokens of the budget",
}

WHAT_FIELD: Mapping[str, str] = {
    "name": "name of the rule set",
    "version": "its version; a changed field is a new one",
    "gates": "gates that are asked, in order; the first that fails is the reason",
    "token_budget": "most tokens of the rendered chat, system prompt and tool schemas included",
    "token_method": "how tokens are counted",
    "reasoning_floor": "lowest reasoning score admitted",
    "unjudged_reasoning": "rows whose reasoning SN15 did not judge are admitted",
    "keep_negatives": "clean failures are kept as negatives",
    "loop_calls": "so many identical calls are a loop",
    "recommended_ids": "most products an answer may name",
    "single_ids": "most products where the query asks for one",
    "several_words": "words of a query that asks for several products",
    "episode_endings": "how an episode may end",
    "episode_faults": "what says that an episode's failure was not the agent's",
    "void_outcomes": "outcomes by which SN15 voids an episode",
    "void_statuses": "statuses by which SN15 takes its word back",
    "open_statuses": "statuses of an item that is not judged yet",
    "evidence": "how far sizes and times of a log may be apart",
    "parser": "code that reads payloads and replies",
    "filter": "code that attributes calls, grades evidence and asks the gates",
    "ours": "fields that the named source leaves open and we had to choose",
}


def sentence(wording: Mapping[str, str], name: str) -> str:
    """What a name means; the name itself where a later rule set brought one that is not known here."""
    return wording.get(name, name.replace("_", " "))
