/** Says in words what an agent did differently in a replay. */
import { canonicalJson } from "../../sdk/json.ts";
import type { Difference } from "../types.ts";
import type { Call, TurnEnd } from "./recorded_turn.ts";

/** What an agent did in a turn. */
export interface TurnDone {
  readonly calls: readonly Call[];
  readonly end: TurnEnd;
  /** Why the replay failed; null if it did not. */
  readonly error: string | null;
  /** Number of a model call to which the recording has no answer; null: each has one. */
  readonly unanswered: number | null;
}

/** The turn that is compared. */
export interface TurnPlace {
  readonly session_id: string;
  /** Number of the turn in this run and session. */
  readonly turn: number;
  /** Name of the sub-agent; null for the run's own session. */
  readonly agent: string | null;
}

/** Returns the first difference: a call, the end, the final text; null without one. */
export function firstDifference(
  recorded: Pick<TurnDone, "calls" | "end"> & { readonly was_cut: boolean },
  replayed: TurnDone,
  { session_id, turn, agent }: TurnPlace,
): Difference | null {
  const where = `turn ${turn}${agent === null ? "" : ` of sub-agent ${JSON.stringify(agent)}`}`;
  const differ = (
    what: Difference["what"],
    call: number | null,
    [before, now]: readonly [unknown, unknown],
    message: string,
  ): Difference => ({ message, what, session_id, turn, call, recorded: before, replayed: now });

  // another call in the recording was a tool's or a hook's, unless the loop makes it again
  const again = new Set(replayed.calls.map((call) => canonicalJson(call)));
  const calls = recorded.calls.filter((call) => call.asked || again.has(canonicalJson(call)));
  for (let index = 0; index < Math.max(calls.length, replayed.calls.length); index++) {
    const [before, now] = [factsOf(calls[index]), factsOf(replayed.calls[index])];
    if (canonicalJson(before) === canonicalJson(now)) continue;
    if (now === null && replayed.unanswered !== null) break;
    const message = `call ${index + 1} of ${where}: recorded ${shownCall(before)}, now ${shownCall(now)}`;
    return differ("call", index + 1, [before, now], message);
  }
  if (replayed.unanswered !== null) {
    const message =
      `model call ${replayed.unanswered} of ${where}: recorded no further answer, now one is asked for`;
    return differ("model_call", replayed.unanswered, [null, null], message);
  }
  const [before, now] = [recorded.end, replayed.end];
  const may_differ = recorded.was_cut && now.status !== "failed" && now.status !== "denied";
  if (before.status !== now.status && !may_differ) {
    const reason = replayed.error === null ? "" : `: ${replayed.error}`;
    const message = `status of ${where}: recorded ${before.status}, now ${now.status}${reason}`;
    return differ("status", null, [before.status, now.status], message);
  }
  if (before.output_text === null || before.output_text === now.output_text) return null;
  const texts = [before.output_text, now.output_text] as const;
  const message = `final text of ${where}: recorded ${shown(texts[0])}, now ${shown(texts[1])}`;
  return differ("output_text", null, texts, message);
}

/** Maximum characters of an input or a text in a message. */
const MAX_SHOWN = 200;

function factsOf(call: Call | undefined): Pick<Call, "name" | "input"> | null {
  return call ? { name: call.name, input: call.input } : null;
}

function shownCall(call: Pick<Call, "name" | "input"> | null): string {
  return call === null ? "no call" : `${call.name} ${shown(call.input)}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}
