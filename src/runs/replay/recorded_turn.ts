/** What a log has of one turn: the calls that the agent made, and the answers that a replay receives. */
import type { ApprovalDecision, Entry } from "../../kernel/host.ts";
import { noopEmission, setPortedFields } from "../../sdk/hook_chain.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Emission, Injection, Message } from "../../sdk/types.ts";

/** A tool call of the agent. */
export interface Call {
  readonly name: string;
  readonly input: unknown;
  /** Whether the model asked for it; otherwise the loop or, in the recording, another module made it. */
  readonly asked: boolean;
}

/** How a turn ended: what its run or its parent's log says. */
export interface TurnEnd {
  readonly status: unknown;
  readonly stop_reason: unknown;
  /** Text of the final answer; null when it is not known. */
  readonly output_text: string | null;
}

/** Returns whether an entry marks that another process recovered the run. */
function isTakeover({ event, data }: Entry): boolean {
  return event === "run:status" && data.resumed === true;
}

/** Events of a model call; one without an answer is made again by the next process. */
const OF_MODEL_CALL: ReadonlySet<string> = new Set([
  "provider:request",
  "provider:response",
  "provider:error",
  "provider:retry",
]);

/** Returns the entries before a process ended, without those of a model call that it did not finish. */
function withoutLostCall(entries: readonly Entry[]): Entry[] {
  const answered = entries.findLastIndex(({ event, data: { inner, response } }) =>
    event === "provider:response" && inner !== true && isObject(response) && !isEmpty(response.content)
  );
  return entries.filter(({ event }, index) => index <= answered || !OF_MODEL_CALL.has(event));
}

function isEmpty(list: unknown): boolean {
  return !Array.isArray(list) || list.length === 0;
}

/** Collects the calls of a turn. Those of one answer may run in parallel: they have the answer's order. */
export class CallCollector {
  readonly #calls: (Call & { answer: number; index: number })[] = [];
  /** Id of a call that the model asked for → its answer and its index there. */
  readonly #asked = new Map<unknown, { answer: number; index: number }>();
  /** Ids of the calls since the last answer. */
  readonly #made = new Set<unknown>();
  /** Ids of calls that a process made before it ended; the next one may make them again. */
  readonly #repeated = new Set<unknown>();
  #answer = 0;

  /** @param open_calls Ids of calls that another run's turn left open. */
  constructor(open_calls: readonly string[] = []) {
    for (const [index, id] of open_calls.entries()) this.#asked.set(id, { answer: 0, index });
  }

  add({ event, data }: Pick<Entry, "event" | "data">): void {
    const id = data.tool_call_id;
    if (event === "provider:response" && data.inner !== true) {
      const { tool_calls } = isObject(data.response) ? data.response : {};
      const calls: JsonObject[] = Array.isArray(tool_calls) ? tool_calls : [];
      this.#answer++;
      this.#made.clear();
      this.#repeated.clear(); // a model may give calls of other answers the same id
      for (const [index, call] of calls.entries()) this.#asked.set(call.id, { answer: this.#answer, index });
    } else if (event === "tool:pre" && !this.#repeated.delete(id)) {
      this.#made.add(id);
      const place = this.#asked.get(id);
      this.#calls.push({
        name: String(data.tool_name),
        input: data.tool_input ?? null,
        asked: place !== undefined,
        answer: this.#answer,
        index: Infinity,
        ...place,
      });
    }
  }

  /** Notes that another process continues the turn. */
  takeOver(): void {
    for (const id of this.#made) this.#repeated.add(id);
  }

  get calls(): Call[] {
    return this.#calls.toSorted((a, b) =>
      a.answer - b.answer || (a.index === b.index ? 0 : a.index - b.index)
    )
      .map(({ name, input, asked }) => ({ name, input, asked }));
  }
}

/** Entries by their events; each is taken once. */
class Untaken {
  readonly #by_event: Map<string, Entry[]>;

  constructor(entries: readonly Entry[]) {
    this.#by_event = Map.groupBy(entries, ({ event }) => event);
  }

  of(event: string): Entry[] {
    return this.#by_event.get(event) ?? [];
  }

  /** Takes the first of the entries of these events that is wanted. */
  take(events: readonly string[], wanted: (entry: Entry) => boolean): Entry | undefined {
    const found = events.flatMap((event) => this.of(event).find(wanted) ?? []);
    const [first] = found.sort((a, b) => a.seq - b.seq);
    if (first) this.of(first.event).splice(this.of(first.event).indexOf(first), 1);
    return first;
  }
}

/** One turn of one session, as recorded. */
export class RecordedTurn {
  readonly session_id: string;
  readonly end: TurnEnd;
  readonly calls: readonly Call[];
  /** Whether a person cancelled it or its process ended: where it stopped depends on the moment. */
  readonly was_cut: boolean;
  /** The prompt; an empty text when no turn began. */
  readonly prompt: unknown;
  /** Number of answers that the replay has received. */
  taken = 0;
  /** Number of entries that the replay has come to. */
  entries_taken = 0;
  /** Answers and failures of the loop's model calls that the replay has not received, in order. */
  readonly #answers: Entry[];
  readonly #entries: readonly Entry[];
  readonly #results: Untaken;
  readonly #emissions: Untaken;
  /** Number of the last entry that the replay has come to. */
  #position = 0;

  constructor(
    entries: readonly Entry[],
    session_id: string,
    end: TurnEnd,
    open_calls: readonly string[] = [],
  ) {
    this.session_id = session_id;
    this.end = end;
    const collector = new CallCollector(open_calls);
    let own: Entry[] = [];
    for (const [index, entry] of entries.entries()) {
      if (isTakeover(entry)) {
        collector.takeOver();
        const asks_again = entries.slice(index).some(({ event, session_id: of }) =>
          event === "provider:request" && of === session_id
        );
        if (asks_again) own = withoutLostCall(own);
      } else if (entry.session_id === session_id) {
        collector.add(entry);
        own.push(entry);
      }
    }
    this.calls = collector.calls;
    this.#entries = own;
    this.#results = new Untaken(own);
    this.#emissions = new Untaken(own);
    this.#answers = own.filter(isAnswer);
    this.was_cut = entries.some(isTakeover) || this.#results.of("cancel:requested").length > 0;
    const promptOf = (event: string) => this.#results.of(event)[0]?.data.prompt;
    this.prompt = promptOf("execution:start") ?? promptOf("prompt:submit") ?? "";
  }

  /** Whether a limit, a person or the end of a process may have ended the turn. */
  get was_stopped(): boolean {
    return this.was_cut || this.end.status === "failed" || this.limit !== null;
  }

  /** Name of the limit that ended the turn, or null. */
  get limit(): string | null {
    return /^limit:(.*)$/.exec(String(this.end.stop_reason))?.[1] ?? null;
  }

  /** Numbers of the entries `provider:request` of the turn that the replay has not come to. */
  get requested(): number[] {
    return this.#emissions.of("provider:request").map(({ seq }) => seq);
  }

  /** Whether the replay has received all answers. */
  get is_used_up(): boolean {
    return this.#answers.length === 0;
  }

  /** Takes the next answer of a provider, else of any; undefined after the last, and for one broken off. */
  takeAnswer(provider: string): Entry | undefined {
    const own = this.#answers.findIndex(({ data }) => data.provider === provider);
    const [answer] = this.#answers.splice(Math.max(0, own), 1);
    if (answer === undefined) return undefined;
    this.taken++;
    const { error } = answer.data;
    const is_aborted = isObject(error) && error.type === "AbortError";
    return is_aborted && this.was_stopped && this.is_used_up ? undefined : this.#comeTo(answer);
  }

  /** Takes the next answer to a call that the context made, or its failure; undefined after the last. */
  takeInnerAnswer(provider: string): Entry | undefined {
    return this.#comeTo(this.#results.take(
      ["provider:response", "provider:error"],
      ({ seq, data }) => data.inner === true && data.provider === provider && seq > this.#position,
    ));
  }

  /** Returns the plan's system text as the turn had it: a file of it may have another one now. */
  systemAfter(history: readonly Message[]): string | undefined {
    let messages: readonly unknown[] = history;
    for (const { event, data, turn_id } of this.#entries) {
      if (turn_id !== undefined) break;
      if (event === "context:message") messages = [...messages, data.message];
      else if (event === "context:reset") messages = data.messages as Message[]; // written by the kernel
    }
    const system = messages.find((message) =>
      isObject(message) && message.role === "system" && isObject(message.metadata) &&
      message.metadata.source === "plan"
    );
    return isObject(system) && typeof system.content === "string" ? system.content : undefined;
  }

  /** Takes the outcome of a tool call, if it is recorded. */
  takeOutcome(call_id: unknown): Entry | undefined {
    const isOf = ({ data }: Entry) => data.tool_call_id === call_id;
    return this.#comeTo(this.#results.take(["tool:post", "tool:error"], isOf));
  }

  /** Takes the answer to a question about an event; undefined if it is not recorded. */
  takeDecision(action: string, call_id: unknown): ApprovalDecision | undefined {
    const isAbout = ({ data }: Entry) => action !== "tool:pre" || data.tool_call_id === call_id;
    const asked = this.#results.take(
      ["approval:required"],
      (entry) => entry.data.action === action && isAbout(entry),
    );
    const found = this.#comeTo(this.#results.take(
      ["approval:granted", "approval:denied"],
      (entry) => asked ? entry.data.approval_id === asked.data.approval_id : isAbout(entry), // remembered: not asked
    ));
    if (!found) return undefined;
    const { decision, reason, decided_by } = found.data as unknown as ApprovalDecision; // written by the kernel
    const denial = decision === "timeout" || decision === "unanswered" ? decision : "deny";
    return { decision: found.event === "approval:granted" ? "allow" : denial, reason, decided_by };
  }

  /** Returns the emission that a recorded entry resulted in; a question is asked again. */
  emissionOf(entry: Entry, data: JsonObject): Emission {
    const about = (found: JsonObject) => (found.tool_call_id ?? null) === (entry.data.tool_call_id ?? null);
    const asked = this.#entries.find(({ event, seq, data }) =>
      seq > entry.seq && event.startsWith("approval:") && typeof data.prompt === "string" && about(data)
    );
    return emissionOf(entry, data, String(asked?.data.prompt ?? ""));
  }

  /** Takes the entry of an event that the replay emits; undefined when the log has no such event. */
  takeEmitted(event: string, { tool_call_id }: JsonObject): Entry | undefined {
    return this.#comeTo(this.#emissions.take([event], ({ data }) => data.tool_call_id === tool_call_id));
  }

  /** Returns the texts of clients that the turn received between this answer and the next one. */
  steeringOf({ seq }: Entry): string[] {
    const until = this.#answers.find((answer) => answer.seq > seq)?.seq ?? Infinity;
    return this.#results.of("orchestrator:steering_injected")
      .filter((entry) => entry.seq > seq && entry.seq < until)
      .map(({ data }) => String(data.content));
  }

  /** Returns what modules answered when the loop collected decisions on a call. */
  decisionsOn(call_id: unknown): JsonObject[] {
    const { decisions } =
      this.#entries.find(({ data }) => data.tool_call_id === call_id && Array.isArray(data.decisions))
        ?.data ?? {};
    return Array.isArray(decisions) ? decisions.filter(isObject) : [];
  }

  /** Takes the next cancellation that was recorded before the entry that the replay has come to. */
  takeCancellation(): "immediate" | "graceful" | undefined {
    const found = this.#results.take(["cancel:requested"], ({ seq }) => seq < this.#position);
    return found && (found.data.state === "immediate" ? "immediate" : "graceful");
  }

  #comeTo<T extends Entry | undefined>(entry: T): T {
    if (entry) {
      this.#position = Math.max(this.#position, entry.seq);
      this.entries_taken++;
    }
    return entry;
  }
}

/** Returns whether an entry is the answer to a call of the loop, or its failure. */
function isAnswer({ event, data }: Entry): boolean {
  if (data.inner === true) return false;
  // retries inside of a provider have no request_id; only the final answer counts
  return event === "provider:response" || event === "provider:error" ||
    event === "provider:retry" && data.request_id !== undefined && data.module_id === undefined;
}

function emissionOf({ verdict, data: recorded }: Entry, data: JsonObject, prompt: string): Emission {
  if (!verdict) return noopEmission(data);
  const injections = (verdict.injections ?? []) as unknown as Injection[]; // written by the kernel
  const { action, hook_name, reason = null } = verdict;
  const question = { prompt, options: ["Allow", "Deny"], timeout: null, default: "deny" as const };
  const emission: Emission = {
    ...noopEmission(verdict.modified ? { ...recorded } : data),
    action: action as Emission["action"], // written by the kernel
    hook_name,
    reason,
    modified: verdict.modified === true,
    injections: injections.map((injection) => ({ ...injection })),
    ...(action === "ask_user" ? { approval: { ...question, hook_name: hook_name ?? "" } } : {}),
  };
  setPortedFields(emission);
  return emission;
}
