/**
 * What a person sees of a run, computed from the entries of its log: texts, tool calls with their output and
 * sub-agents, questions, notices, and what the run has used. The page, the chat and programs of your own draw
 * the same one. It knows no screen and no clock, and the same entries make the same transcript, however they
 * are split.
 */
import type { Data, Entry as LogEntry, Run } from "./objects.ts";
import {
  type CallUsage,
  type Compaction,
  type Gauge,
  type Item,
  MAX_TOOL_OUTPUT,
  type ModelCall,
  type NoticeItem,
  type Question,
  type QuestionItem,
  type TextItem,
  type Thread,
  type ToolItem,
  type TranscriptUsage,
} from "./transcript_items.ts";

/** What a transcript reads of an entry of the log. */
type Entry = Pick<LogEntry, "seq" | "event" | "ts" | "run_id" | "session_id" | "data"> & {
  readonly verdict?: unknown;
};

/** Characters of a prompt that make the title of its run. */
const MAX_TITLE = 200;
const ENDED: ReadonlySet<string> = new Set(["completed", "incomplete", "denied", "cancelled", "failed"]);
/** Types of `tool:error` for calls that were not executed. */
const NEVER_RAN: ReadonlySet<unknown> = new Set(["tool_not_found", "tool_input_invalid", "limit_reached"]);

/** Returns whether a run with this status has ended. */
export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type Text = Mutable<TextItem>;
type Tool = Mutable<ToolItem>;

/** A thread while it is computed. */
interface Work {
  readonly thread: Thread & { readonly items: Item[] };
  /** Blocks of the answer that is being written, by request and index. */
  readonly blocks: Map<string, Text | Tool>;
  readonly tools: Map<string, Tool>;
}

/**
 * The transcript of one run. Threads and items are live: later entries change them in place, and
 * {@linkcode RunTranscript.add} returns which. The other lists are replaced when they change.
 */
export class RunTranscript {
  /** `queued`, `running`, `awaiting_approval`, `awaiting_limit`, or how the run ended. */
  status = "queued";
  /** The first 200 characters of the prompt; empty before it is known. */
  title = "";
  /** The conversation of the run's own session; null before its first entry. */
  thread: Thread | null = null;
  /** All questions, the oldest first. */
  questions: readonly Question[] = [];
  /** All model calls, those of sub-agents too. */
  calls: readonly ModelCall[] = [];
  compactions: readonly Compaction[] = [];
  usage: TranscriptUsage = { model_calls: 0, tool_calls: 0, total_tokens: 0, cost_usd: null };
  /** Limits of the run as last reported. */
  limits: Data = {};
  /** Tokens that the last model call of the run's own session was sent; 0 before it. */
  context_tokens = 0;
  /** Tokens that the context may have; null while no entry says it. */
  context_budget: number | null = null;
  /** The run object of `run:end`; null before. */
  run: Run | null = null;
  /** Times of the first entry and of the end. */
  started: string | null = null;
  ended: string | null = null;
  /** Whether it was asked to end. */
  cancelling = false;
  /** Number of the last entry that was added. */
  seq = 0;

  readonly #works = new Map<string, Work>();
  #changed = new Set<Item | Thread>();
  #waited_ms = 0;
  #waits_since: string | null = null;
  #last_ts = "";

  /**
   * Adds entries in their order, one at a time or many; those that are there already are skipped. Returns the
   * items that are new or have changed, and the threads whose items are other ones.
   */
  add(entries: readonly Entry[]): ReadonlySet<Item | Thread> {
    this.#changed = new Set();
    for (const entry of entries) {
      if (entry.seq <= this.seq) continue;
      this.seq = entry.seq;
      this.#last_ts = entry.ts;
      try {
        this.#apply(entry);
      } catch {
        // a hook changed its data to something else: the log has it, and the transcript goes without
      }
    }
    return this.#changed;
  }

  /** Whether a tool of the run's own session runs: a graceful stop waits for it. */
  get runs_tool(): boolean {
    return this.thread?.items.some((item) => item.kind === "tool" && item.phase === "running") ?? false;
  }

  /** Milliseconds that it ran, without waits for a person, up to `now` (as of `Date.now()`) or to its end. */
  activeMs(now: number): number {
    if (this.started === null) return 0;
    const end = this.ended ?? this.#waits_since;
    const until = end === null ? Math.max(now, Date.parse(this.#last_ts)) : Date.parse(end);
    return until - Date.parse(this.started) - this.#waited_ms;
  }

  /** Milliseconds that it has waited for a person, up to `now` or to its end. */
  waitedMs(now: number): number {
    const since = this.#waits_since;
    return this.#waited_ms + (since === null ? 0 : Math.max(0, now - Date.parse(since)));
  }

  /** What is used of each limit that the run has, up to `now`. */
  gauges(now: number): Gauge[] {
    const { model_calls, tool_calls, total_tokens, cost_usd } = this.usage;
    const used = {
      max_iterations: model_calls,
      max_tool_calls: tool_calls,
      max_total_tokens: total_tokens,
      max_cost_usd: cost_usd ?? 0,
      max_duration_s: this.activeMs(now) / 1000,
    };
    return Object.entries(used).flatMap(([name, used]) => {
      const value = this.limits[name];
      return value === undefined || value === null ? [] : [{ name, used, value: Number(value) }];
    });
  }

  #workOf(session_id: string, agent: string | null = null): Work {
    let work = this.#works.get(session_id);
    if (!work) {
      work = { thread: { session_id, agent, items: [] }, blocks: new Map(), tools: new Map() };
      this.#works.set(session_id, work);
    }
    return work;
  }

  #push<Kind extends Item>({ thread }: Work, item: Kind): Mutable<Kind> {
    thread.items.push(item);
    this.#changed.add(thread).add(item);
    return item;
  }

  #text(work: Work, kind: TextItem["kind"], seq: number, text: unknown, done = true): Text {
    return this.#push(work, { kind, key: keyOf(work, seq), seq, text: textOf(text), done } as TextItem);
  }

  #tool(work: Work, name: string, seq: number, fields: Partial<ToolItem>): Tool {
    return this.#push<ToolItem>(work, {
      kind: "tool",
      key: keyOf(work, seq),
      seq,
      call_id: null,
      name,
      phase: "writing",
      input: undefined,
      output: "",
      output_dropped: 0,
      result: undefined,
      question: null,
      thread: null,
      started: null,
      ended: null,
      end_seq: null,
      ...fields,
    });
  }

  #notice(work: Work, seq: number, level: NoticeItem["level"], text: string): void {
    this.#push<NoticeItem>(work, { kind: "notice", key: keyOf(work, seq), seq, level, text });
  }

  #set<Kind extends Mutable<Item>>(item: Kind, fields: Partial<Kind>): void {
    Object.assign(item, fields);
    this.#changed.add(item as Item);
  }

  #apply(entry: Entry): void {
    const { event, seq, ts, session_id, data } = entry;
    const work = this.#workOf(session_id);
    if (this.thread === null) {
      this.thread = work.thread;
      this.started = ts;
      this.#changed.add(work.thread);
    }
    switch (event) {
      case "run:start":
      case "run:status":
        this.status = String(data.status);
        this.limits = (data.limits ?? this.limits) as Data;
        if (typeof data.title === "string") this.title = data.title;
        this.#wait(this.status.startsWith("awaiting"), ts);
        if (data.resumed === true) {
          this.#dropBlocks(() => true);
          this.#endCalls(ts);
          this.#notice(work, seq, "info", "The run continues after a restart of the server");
        }
        break;
      case "run:end":
        this.#end(data.run as Run, ts);
        break;
      case "run:steered":
        this.#text(work, "steering", seq, data.text);
        break;
      case "run:limits":
        this.#raised(work, entry);
        break;
      case "prompt:submit":
        if (this.title === "") this.title = textOf(data.prompt).slice(0, MAX_TITLE); // a log without one
        this.#text(work, "prompt", seq, data.prompt);
        break;
      case "module:skipped":
        this.#notice(work, seq, "warning", textOf(data.message));
        break;
      case "user:notification":
        this.#notice(work, seq, levelOf(data.level), textOf(data.message));
        break;
      case "policy:violation":
        this.#notice(work, seq, "warning", `A limit on injections was exceeded: ${textOf(data.kind)}`);
        break;
      case "cancel:requested":
        this.cancelling = true;
        break;
      case "context:compaction":
        this.compactions = [...this.compactions, { seq, session_id }];
        if (work.thread === this.thread && typeof data.budget === "number") this.context_budget = data.budget;
        break;
      case "llm:stream_aborted":
        this.#use(data.usage);
        for (const [key, block] of work.blocks) {
          if (key.startsWith(`${data.request_id}/`)) this.#close(block);
        }
        break;
      default:
        if (event.startsWith("provider:")) this.#applyCall(work, entry);
        else if (event.startsWith("content_block:")) this.#applyBlock(work, entry);
        else if (event.startsWith("approval:")) this.#applyQuestion(work, entry);
        else this.#applyTool(work, entry);
    }
  }

  #end(run: Run, ts: string): void {
    this.run = run;
    this.status = run.status;
    this.ended = ts;
    const { budget } = (run.context ?? {}) as Data;
    if (typeof budget === "number" && budget > 0) this.context_budget = budget;
    this.#wait(false, ts);
    this.#endCalls(ts);
    for (const work of this.#works.values()) {
      this.#closeBlocks(work);
      for (const item of work.thread.items) {
        if (item.kind !== "tool" || item.ended !== null) continue;
        this.#set(item as Tool, { phase: item.phase === "denied" ? "denied" : "stopped", ended: ts });
      }
    }
  }

  #raised(work: Work, { seq, data }: Entry): void {
    const limits = data.limits as Data;
    const raised = Object.entries(limits).filter(([name, value]) => value !== this.limits[name]);
    this.limits = limits;
    const values = raised.map(([name, value]) => `${name} is now ${value}`).join(", ");
    this.#notice(work, seq, "info", `${values}: raised by ${textOf(data.raised_by ?? "a person")}`);
  }

  #wait(waits: boolean, ts: string): void {
    if (waits) this.#waits_since ??= ts;
    else if (this.#waits_since !== null) {
      this.#waited_ms += Date.parse(ts) - Date.parse(this.#waits_since);
      this.#waits_since = null;
    }
  }

  #use(usage: unknown): void {
    if (!isData(usage)) return;
    const { total_tokens, cost_usd } = this.usage;
    const cost = typeof usage.cost_usd === "string" ? (cost_usd ?? 0) + Number(usage.cost_usd) : cost_usd;
    this.#count({ total_tokens: total_tokens + Number(usage.total_tokens ?? 0), cost_usd: cost });
  }

  #count(used: Partial<TranscriptUsage>): void {
    this.usage = { ...this.usage, ...used };
  }

  #applyCall(work: Work, { event, seq, ts, session_id, data }: Entry): void {
    if (event === "provider:request") {
      this.#closeBlocks(work);
      const call = { ended: null, end_seq: null, usage: null, error: null };
      this.calls = [...this.calls, {
        seq,
        session_id,
        provider: String(data.provider),
        started: ts,
        ...call,
      }];
    } else if (event === "provider:response" || event === "provider:error") {
      this.#use(data.usage);
      if (event === "provider:response") this.#count({ model_calls: this.usage.model_calls + 1 });
      if (data.inner === true) { // of a tool or a hook: not what the agent says
        if (event === "provider:error") this.#closeBlocks(work);
        return;
      }
      const usage = isData(data.usage) ? data.usage as CallUsage : null;
      if (work.thread === this.thread && usage?.input_tokens) this.context_tokens = usage.input_tokens;
      const error = event === "provider:error" ? messageOf(data.error) || "The model call failed" : null;
      this.#setCall(session_id, { ended: ts, end_seq: seq, usage, error });
      if (error !== null) this.#notice(work, seq, "error", error);
      else if (work.blocks.size === 0) this.#applyResponse(work, seq, data.response);
      this.#closeBlocks(work);
    } else if (event === "provider:retry") {
      this.#use(data.usage);
      this.#dropBlocks((_, owner) => owner === work); // a provider that retries has request ids of its own
      const delay = Number(data.delay) > 0 ? ` in ${Number(data.delay).toFixed(1)} s` : "";
      this.#notice(work, seq, "warning", `${textOf(data.error_message)}; trying again${delay}`);
    }
  }

  /** Adds the texts of a loop that reports no blocks. */
  #applyResponse(work: Work, seq: number, response: unknown): void {
    const { content } = (response ?? {}) as { content?: Data[] };
    for (const { type, text, thinking } of content ?? []) {
      if (type === "text" && text) this.#text(work, "text", seq, text);
      if (type === "thinking" && thinking) this.#text(work, "thinking", seq, thinking);
    }
  }

  /** Changes the open call of a session, if it has one. */
  #setCall(session_id: string, fields: Partial<ModelCall>): void {
    const index = this.calls.findLastIndex((call) => call.session_id === session_id && call.ended === null);
    if (index >= 0) this.calls = this.calls.with(index, { ...this.calls[index]!, ...fields });
  }

  /** Ends calls that no answer will end. */
  #endCalls(ts: string): void {
    this.calls = this.calls.map((call) => ({ ...call, ended: call.ended ?? ts }));
  }

  #applyBlock(work: Work, { event, seq, data }: Entry): void {
    if (event === "content_block:void") {
      return this.#dropBlocks((key) => key.startsWith(`${data.request_id}/`));
    }
    const key = `${data.request_id}/${data.block_index}`;
    const open = work.blocks.get(key);
    if (event === "content_block:start") {
      const { block_type } = data;
      if (block_type === "tool_call") {
        work.blocks.set(key, this.#tool(work, textOf(data.name ?? "tool"), seq, {}));
      } else if (block_type === "text" || block_type === "thinking") {
        work.blocks.set(key, this.#text(work, block_type, seq, "", false));
      }
    } else if (event === "content_block:delta") {
      if (open && open.kind !== "tool") this.#set(open, { text: open.text + textOf(data.delta) });
    } else if (event === "content_block:end" && open) {
      const block = data.block as Data;
      if (open.kind === "tool") {
        this.#set(open, { input: block.input, call_id: String(block.id) });
        work.tools.set(String(block.id), open);
      } else this.#set(open, { text: textOf(block.text ?? block.thinking ?? open.text), done: true });
    }
  }

  #close(block: Text | Tool): void {
    if (block.kind !== "tool" && !block.done) this.#set(block, { done: true });
  }

  /** Ends the answer that was being written. */
  #closeBlocks({ blocks }: Work): void {
    for (const block of blocks.values()) this.#close(block);
    blocks.clear();
  }

  /** Removes blocks of answers that are asked for again, complete ones too: they are void. */
  #dropBlocks(isVoid: (key: string, work: Work) => boolean): void {
    for (const work of this.#works.values()) {
      const dropped = new Set<Item>();
      for (const [key, block] of work.blocks) {
        if (!isVoid(key, work)) continue;
        work.blocks.delete(key);
        dropped.add(block as Item);
        if (block.kind === "tool" && block.call_id !== null) work.tools.delete(block.call_id);
      }
      if (dropped.size === 0) continue;
      const { items } = work.thread;
      items.splice(0, items.length, ...items.filter((item) => !dropped.has(item)));
      this.#changed.add(work.thread);
    }
  }

  #applyTool(work: Work, { event, seq, ts, data, verdict }: Entry): void {
    const id = String(data.tool_call_id);
    const known = work.tools.get(id);
    switch (event) {
      case "tool:pre": {
        // an id that comes again after its end is another call
        const item = known && known.ended === null
          ? known
          : this.#tool(work, String(data.tool_name), seq, { call_id: id });
        work.tools.set(id, item);
        const { action, reason } = (verdict ?? {}) as Data;
        this.#set(item, {
          input: data.tool_input,
          ...(action === "deny"
            ? { phase: "denied", result: textOf(reason) }
            : { phase: "running", started: ts }),
        });
        break;
      }
      case "tool:output":
        if (known && known.ended === null) this.#say(known, textOf(data.text));
        break;
      case "tool:post":
      case "tool:error": {
        const is_error = event === "tool:error";
        const { success, output, error } = (data.result ?? {}) as Data;
        if (!is_error || !NEVER_RAN.has((data.error as Data | undefined)?.type)) {
          this.#count({ tool_calls: this.usage.tool_calls + 1 });
        }
        if (!known) break;
        const failed = is_error || success === false;
        this.#set(known, {
          phase: !failed ? "done" : known.phase === "denied" ? "denied" : "failed",
          result: is_error
            ? messageOf(data.error)
            : failed
            ? messageOf(error ?? output)
            : output ?? data.result,
          ended: ts,
          end_seq: seq,
        });
        break;
      }
      case "context:message":
        this.#applyResult(work, data.message as Data, ts, seq);
        break;
      case "task:agent_spawned":
      case "task:agent_resumed": {
        const { thread } = this.#workOf(String(data.sub_session_id), textOf(data.agent ?? "agent"));
        if (known) this.#set(known, { thread });
        else this.#notice(work, seq, "info", `Sub-agent ${thread.agent} started`);
      }
    }
  }

  #say(item: Tool, text: string): void {
    const output = item.output + text;
    const dropped = Math.max(0, output.length - MAX_TOOL_OUTPUT);
    this.#set(item, { output: output.slice(dropped), output_dropped: item.output_dropped + dropped });
  }

  /** A call that was refused or broken off has no `tool:post`: its result in the history says why. */
  #applyResult(work: Work, { role, tool_call_id, content }: Data, ts: string, seq: number): void {
    const item = role === "tool" ? work.tools.get(String(tool_call_id)) : undefined;
    if (!item || item.ended !== null) return;
    const ended = { ended: ts, end_seq: seq };
    if (this.cancelling) return this.#set(item, { phase: "stopped", ...ended });
    const phase = item.phase === "running" ? "failed" : "denied";
    this.#set(item, { phase, result: textOf(content), ...ended });
  }

  #applyQuestion(work: Work, entry: Entry): void {
    const { event, seq, ts, data, run_id, session_id } = entry;
    const { approval_id: id, ...fields } = data;
    const call = data.tool_call_id === null ? undefined : work.tools.get(String(data.tool_call_id));
    if (event === "approval:required") {
      const question = {
        ...fields,
        id,
        run_id,
        session_id,
        status: "pending",
        created_at: ts,
      } as unknown as Question;
      this.questions = [...this.questions, question];
      if (call) this.#set(call, { phase: "asking", question });
      else this.#push<QuestionItem>(work, { kind: "question", key: keyOf(work, seq), seq, question });
      return;
    }
    const granted = event === "approval:granted";
    this.#answer(work, entry, granted);
    if (call && call.ended === null) { // the wait for a person is no part of its time
      if (!granted) this.#set(call, { phase: "denied" });
      else if (call.phase === "asking") this.#set(call, { phase: "running", started: ts });
    } else if (granted && !call) this.#setCall(session_id, { started: ts }); // it has waited at a limit
  }

  #answer({ thread }: Work, { data, ts }: Entry, granted: boolean): void {
    const { approval_id, decision, reason = null, decided_by = null } = data;
    const index = this.questions.findIndex(({ id, status }) => id === approval_id && status === "pending");
    if (index < 0) return; // a remembered answer, for which no one was asked
    const status = decision === "timeout" ? "expired" : granted ? "granted" : "denied";
    const answer = { status, decision: textOf(decision), reason, decided_by, decided_at: ts } as Partial<
      Question
    >;
    const question = { ...this.questions[index]!, ...answer };
    this.questions = this.questions.with(index, question);
    const item = thread.items.findLast((item) => "question" in item && item.question?.id === approval_id);
    if (item) this.#set(item as Mutable<ToolItem | QuestionItem>, { question });
  }
}

function keyOf({ thread }: Work, seq: number): string {
  return `${seq}.${thread.items.length}`;
}

function levelOf(level: unknown): NoticeItem["level"] {
  return level === "warning" || level === "error" ? level : "info";
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null;
}

/** Returns content as text: of blocks, the text of those that have one. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (Array.isArray(content)) return content.map(blockText).join("\n");
  return typeof content === "object" ? JSON.stringify(content, null, 2) : String(content);
}

function blockText(block: unknown): string {
  const { text, type } = (block ?? {}) as { text?: unknown; type?: unknown };
  return typeof text === "string" ? text : `[${type ?? "block"}]`;
}

/** Returns the message of an error in an entry. */
export function messageOf(error: unknown): string {
  const { msg, message } = (error ?? {}) as { msg?: unknown; message?: unknown };
  return typeof msg === "string" ? msg : typeof message === "string" ? message : textOf(error);
}
