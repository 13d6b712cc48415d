/**
 * What the page shows of one run, computed from its entries: the conversation, the open questions, the calls
 * of models. Entries come in batches, so that a stream of a thousand entries a second draws once per frame.
 */
import { batch, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Approval, Data, Entry, Run } from "preamp/client";

/** A text that the user or a model wrote. */
export interface TextItem {
  readonly kind: "user" | "steering" | "text" | "thinking";
  readonly key: string;
  readonly seq: number;
  readonly text: Signal<string>;
  /** False while it is being written. */
  readonly done: Signal<boolean>;
}

/** How far a tool call is. */
export type ToolPhase = "writing" | "asking" | "running" | "done" | "failed" | "denied";

/** A tool call with its result. */
export interface ToolItem {
  readonly kind: "tool";
  readonly key: string;
  readonly seq: number;
  readonly name: string;
  readonly state: Signal<{
    readonly phase: ToolPhase;
    readonly input: unknown;
    /** The result, or the error's message. */
    readonly output?: unknown;
    readonly started?: string;
    readonly ended?: string;
    /** Number of the entry that ended it. */
    readonly end_seq?: number;
  }>;
  /** What a sub-agent did for the call. */
  readonly thread: Signal<Thread | null>;
}

/** A fact that stands between texts: a notice, a failure, a limit, a compaction. */
export interface NoticeItem {
  readonly kind: "notice";
  readonly key: string;
  readonly seq: number;
  readonly level: "info" | "warning" | "error";
  readonly text: string;
}

/** A part of a conversation. */
export type Item = TextItem | ToolItem | NoticeItem;

/** The conversation of a session in this run: that of the run, or of a sub-agent. */
export interface Thread {
  readonly session_id: string;
  readonly agent: string | null;
  /** In order; grows in place, and `version` says when. */
  readonly items: Item[];
  readonly version: Signal<number>;
}

/** One call of a model. */
export interface ModelCall {
  /** Number of its `provider:request`. */
  readonly seq: number;
  readonly session_id: string;
  readonly provider: string;
  readonly started: string;
  readonly ended: string | null;
  /** Number of the entry that ended it. */
  readonly end_seq: number | null;
  readonly usage: Usage | null;
  readonly error: string | null;
}

/** Tokens and cost of a model call. */
export interface Usage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cache_read_tokens?: number;
  readonly cost_usd?: string | null;
}

/** A compaction of a view. */
export interface Compaction {
  readonly seq: number;
  readonly session_id: string;
}

/** A question to a person, with its answer. */
export interface Question extends Approval {
  readonly action: string;
  readonly options: readonly (string | { label: string; effect: "allow" | "deny"; remember?: string })[];
  readonly limit?: {
    readonly name: string;
    readonly value: string | number;
    readonly used: string | number;
    readonly next: { readonly tokens: number; readonly cost_usd: string | null } | null;
  };
  /** The answer; absent while it is open. */
  readonly decision?: string;
  readonly reason?: string | null;
}

const ENDED = new Set(["completed", "incomplete", "denied", "cancelled", "failed"]);

/** Returns whether a run has ended. */
export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

interface Work extends Thread {
  /** Blocks of the answer that is being written, by request and index. */
  readonly blocks: Map<string, TextItem | ToolItem>;
  readonly tools: Map<string, ToolItem>;
}

/** One run as the page shows it. */
export class RunView {
  readonly id: string;
  /** All entries so far, in order; grows in place, and `count` says when. */
  readonly entries: Entry[] = [];
  readonly count: Signal<number> = signal(0);
  readonly status: Signal<string> = signal("queued");
  /** The run object as last received; null before the first one. */
  readonly run: Signal<Run | null> = signal(null);
  readonly questions: Signal<readonly Question[]> = signal([]);
  readonly calls: Signal<readonly ModelCall[]> = signal([]);
  readonly compactions: Signal<readonly Compaction[]> = signal([]);
  /** Time of the first entry. */
  readonly started: Signal<string | null> = signal(null);
  readonly ended: Signal<string | null> = signal(null);
  /** Whether it was asked to end after the step in progress. */
  readonly cancelling: Signal<boolean> = signal(false);
  /** Milliseconds that it waited for a person, and since when it does. */
  #waited_ms = 0;
  #waits_since: string | null = null;
  /** Its limits as last reported. */
  #limits: Data = {};
  readonly #thread: Signal<Thread | null> = signal(null);
  readonly #threads = new Map<string, Work>();
  readonly #changed = new Set<Work>();

  constructor(id: string) {
    this.id = id;
  }

  /** The conversation of the run's own session; null before its first entry. */
  get thread(): ReadonlySignal<Thread | null> {
    return this.#thread;
  }

  /** Returns the milliseconds that it ran, without waits for a person, up to now or to its end. */
  activeMs(now: number): number {
    if (this.started.value === null) return 0;
    const end = this.ended.value ?? this.#waits_since;
    const until = end === null ? Math.max(now, Date.parse(this.entries.at(-1)!.ts)) : Date.parse(end);
    return until - Date.parse(this.started.value) - this.#waited_ms;
  }

  /** Adds entries, which continue those that are there; earlier ones are skipped. */
  add(entries: readonly Entry[]): void {
    batch(() => {
      for (const entry of entries) {
        if (entry.seq <= (this.entries.at(-1)?.seq ?? 0)) continue;
        this.entries.push(entry);
        try {
          this.#apply(entry);
        } catch {
          // a hook changed its data to something else: the log has it, and the conversation goes without
        }
      }
      for (const work of this.#changed) work.version.value++;
      this.#changed.clear();
      this.count.value = this.entries.length;
    });
  }

  #threadOf(session_id: string, agent: string | null = null): Work {
    const known = this.#threads.get(session_id);
    if (known) return known;
    const work: Work = {
      session_id,
      agent,
      items: [],
      version: signal(0),
      blocks: new Map(),
      tools: new Map(),
    };
    this.#threads.set(session_id, work);
    return work;
  }

  #push(work: Work, item: Item): void {
    work.items.push(item);
    this.#changed.add(work);
  }

  #text(work: Work, kind: TextItem["kind"], entry: Entry, text: unknown, done = true): TextItem {
    const key = `${entry.seq}.${work.items.length}`;
    const item = { kind, key, seq: entry.seq, text: signal(textOf(text)), done: signal(done) };
    this.#push(work, item);
    return item;
  }

  #tool(work: Work, name: string, seq: number, phase: ToolPhase, input: unknown): ToolItem {
    const key = `${seq}.${work.items.length}`;
    const item: ToolItem = {
      kind: "tool",
      key,
      seq,
      name,
      state: signal({ phase, input }),
      thread: signal(null),
    };
    this.#push(work, item);
    return item;
  }

  #notice(work: Work, seq: number, level: NoticeItem["level"], text: string): void {
    this.#push(work, { kind: "notice", key: `${seq}.${work.items.length}`, seq, level, text });
  }

  #apply(entry: Entry): void {
    const { event, seq, ts, session_id, data } = entry;
    const work = this.#threadOf(session_id);
    if (this.#thread.value === null) {
      this.#thread.value = work;
      this.started.value = ts;
    }
    switch (event) {
      case "run:start":
      case "run:status":
        this.status.value = String(data.status);
        this.#limits = (data.limits ?? this.#limits) as Data;
        this.#wait(this.status.value.startsWith("awaiting"), ts);
        if (data.resumed === true) {
          this.#notice(work, seq, "info", "The run continues after a restart of the server");
          this.#endCalls(ts);
        }
        break;
      case "run:end": {
        const run = data.run as Run;
        this.run.value = run;
        this.status.value = run.status;
        this.ended.value = ts;
        this.#wait(false, ts);
        for (const work of this.#threads.values()) this.#closeBlocks(work);
        this.#endCalls(ts);
        break;
      }
      case "run:steered":
        this.#text(work, "steering", entry, data.text);
        break;
      case "run:limits": {
        const raised = Object.entries(data.limits as Data).filter(([name, value]) =>
          value !== this.#limits[name]
        );
        this.#limits = data.limits as Data;
        const values = raised.map(([name, value]) => `${name} is now ${value}`).join(", ");
        this.#notice(work, seq, "info", `${values}: raised by ${textOf(data.raised_by ?? "a person")}`);
        break;
      }
      case "prompt:submit":
        this.#text(work, "user", entry, data.prompt);
        break;
      case "module:skipped":
        this.#notice(work, seq, "warning", textOf(data.message));
        break;
      case "user:notification":
        this.#notice(work, seq, levelOf(data.level), textOf(data.message));
        break;
      case "context:compaction":
        this.compactions.value = [...this.compactions.value, { seq, session_id }];
        break;
      case "cancel:requested":
        this.cancelling.value = true;
        this.#notice(work, seq, "info", `Cancellation requested (${textOf(data.state)})`);
        break;
      case "policy:violation":
        this.#notice(work, seq, "warning", `A limit on injections was exceeded: ${textOf(data.kind)}`);
        break;
      default:
        if (event.startsWith("provider:")) this.#applyCall(work, entry);
        else if (event.startsWith("content_block:") || event === "llm:stream_aborted") {
          this.#applyBlock(work, entry);
        } else if (event.startsWith("approval:")) this.#applyQuestion(work, entry);
        else this.#applyTool(work, entry);
    }
  }

  #wait(waits: boolean, ts: string): void {
    if (waits) this.#waits_since ??= ts;
    else if (this.#waits_since !== null) {
      this.#waited_ms += Date.parse(ts) - Date.parse(this.#waits_since);
      this.#waits_since = null;
    }
  }

  #applyCall(work: Work, entry: Entry): void {
    const { event, seq, ts, session_id, data } = entry;
    if (event === "provider:request") {
      this.#closeBlocks(work);
      this.calls.value = [...this.calls.value, {
        seq,
        session_id,
        provider: String(data.provider),
        started: ts,
        ended: null,
        end_seq: null,
        usage: null,
        error: null,
      }];
    } else if (event === "provider:response" || event === "provider:error") {
      if (data.inner === true) { // of a tool or a hook: not what the agent says
        if (event === "provider:error") this.#closeBlocks(work);
        return;
      }
      const { msg } = (data.error ?? {}) as { msg?: string };
      const usage = (data.usage ?? null) as Usage | null;
      this.#endCall(session_id, { ended: ts, end_seq: seq, usage, error: msg ?? null });
      if (event === "provider:error") this.#notice(work, seq, "error", msg ?? "The model call failed");
      else if (work.blocks.size === 0) this.#applyResponse(work, entry);
      this.#closeBlocks(work);
    } else if (event === "provider:retry") {
      this.#dropBlocks(work);
      const delay = Number(data.delay) > 0 ? ` in ${Number(data.delay).toFixed(1)} s` : "";
      this.#notice(work, seq, "warning", `${textOf(data.error_message)}; trying again${delay}`);
    }
  }

  /** Shows an answer of a loop that reports no blocks. */
  #applyResponse(work: Work, entry: Entry): void {
    const { content } = (entry.data.response ?? {}) as { content?: { type: string; text?: string }[] };
    for (const { type, text } of content ?? []) {
      if (type === "text" && text) this.#text(work, "text", entry, text);
    }
  }

  #endCall(session_id: string, end: Pick<ModelCall, "ended" | "end_seq" | "usage" | "error">): void {
    const calls = this.calls.value;
    const index = calls.findLastIndex((call) => call.session_id === session_id && call.ended === null);
    if (index >= 0) this.calls.value = calls.with(index, { ...calls[index]!, ...end });
  }

  /** Ends calls that no answer will end. */
  #endCalls(ts: string): void {
    this.calls.value = this.calls.value.map((call) => ({ ...call, ended: call.ended ?? ts }));
  }

  /** Measures an open call from now: it has waited at a limit. */
  #restartCall(session_id: string, started: string): void {
    this.calls.value = this.calls.value.map((call) =>
      call.session_id === session_id && call.ended === null ? { ...call, started } : call
    );
  }

  #applyBlock(work: Work, entry: Entry): void {
    const { event, seq, data } = entry;
    if (event === "llm:stream_aborted") {
      for (const key of work.blocks.keys()) {
        if (key.startsWith(`${data.request_id}/`)) endBlock(work, key);
      }
      return;
    }
    const key = `${data.request_id}/${data.block_index}`;
    const open = work.blocks.get(key);
    if (event === "content_block:start") {
      const { block_type } = data;
      if (block_type === "tool_call") {
        work.blocks.set(key, this.#tool(work, textOf(data.name ?? "tool"), seq, "writing", undefined));
      } else if (block_type === "text" || block_type === "thinking") {
        work.blocks.set(key, this.#text(work, block_type, entry, "", false));
      }
    } else if (event === "content_block:delta") {
      if (open && open.kind !== "tool") open.text.value += textOf(data.delta);
    } else if (event === "content_block:end") {
      const block = data.block as Data;
      if (open?.kind === "tool") {
        open.state.value = { ...open.state.value, input: block.input };
        work.tools.set(String(block.id), open);
      } else if (open) {
        open.text.value = textOf(block.text ?? block.thinking ?? open.text.value);
      }
      endBlock(work, key);
    }
  }

  /** Ends the answer that was being written. */
  #closeBlocks(work: Work): void {
    for (const key of work.blocks.keys()) endBlock(work, key);
    work.blocks.clear();
  }

  /** Removes the blocks of an attempt that is repeated, complete ones too: they are void. */
  #dropBlocks(work: Work): void {
    const dropped = new Set<Item>(work.blocks.values());
    work.blocks.clear();
    if (dropped.size === 0) return;
    work.items.splice(0, work.items.length, ...work.items.filter((item) => !dropped.has(item)));
    this.#changed.add(work);
  }

  #applyTool(work: Work, { event, seq, ts, data }: Entry): void {
    const id = String(data.tool_call_id);
    if (event === "tool:pre") {
      const input = data.tool_input;
      const item = work.tools.get(id) ?? this.#tool(work, String(data.tool_name), seq, "running", input);
      work.tools.set(id, item);
      item.state.value = { ...item.state.value, phase: "running", input, started: ts };
    } else if (event === "tool:post" || event === "tool:error") {
      const item = work.tools.get(id);
      if (!item) return;
      const { success, output, error } = (data.result ?? {}) as Data;
      const failed = event === "tool:error" || success === false;
      const reason = event === "tool:error" ? data.error : error ?? output;
      item.state.value = {
        ...item.state.value,
        phase: failed ? item.state.value.phase === "denied" ? "denied" : "failed" : "done",
        output: failed ? messageOf(reason) : output === undefined ? data.result : output,
        ended: ts,
        end_seq: seq,
      };
    } else if (event === "context:message") {
      this.#applyResult(work, data.message as Data, ts, seq);
    } else if (event === "task:agent_spawned" || event === "task:agent_resumed") {
      const item = work.tools.get(id);
      const thread = this.#threadOf(String(data.sub_session_id), textOf(data.agent ?? "agent"));
      if (item) item.thread.value = thread;
      else this.#notice(work, seq, "info", `Sub-agent ${thread.agent} started`);
    }
  }

  /** A call that was refused has no `tool:post`: its result in the history says why. */
  #applyResult(work: Work, { role, tool_call_id, content }: Data, ts: string, seq: number): void {
    if (role !== "tool") return;
    const item = work.tools.get(String(tool_call_id));
    if (!item || item.state.value.ended !== undefined) return;
    item.state.value = {
      ...item.state.value,
      phase: "denied",
      output: textOf(content),
      ended: ts,
      end_seq: seq,
    };
  }

  #applyQuestion(work: Work, { event, ts, data, run_id, session_id }: Entry): void {
    const item = data.tool_call_id === null ? undefined : work.tools.get(String(data.tool_call_id));
    if (event === "approval:required") {
      const question = {
        ...data,
        id: data.approval_id,
        run_id,
        session_id,
        status: "pending",
        created_at: ts,
      } as unknown as Question; // the schema of approval:required
      this.questions.value = [...this.questions.value, question];
      if (item) item.state.value = { ...item.state.value, phase: "asking" };
      return;
    }
    const granted = event === "approval:granted";
    const { approval_id, decision, reason } = data;
    this.questions.value = this.questions.value.map((question) =>
      question.id !== approval_id ? question : {
        ...question,
        status: granted ? "granted" : "denied",
        decision: textOf(decision),
        reason: reason as string | null,
      }
    );
    if (item?.state.value.phase === "asking") {
      const { value } = item.state; // the wait for a person is no part of its time
      item.state.value = granted
        ? { ...value, phase: "running", started: ts }
        : { ...value, phase: "denied" };
    } else if (granted && !item) this.#restartCall(session_id, ts);
  }
}

function endBlock({ blocks }: Work, key: string): void {
  const block = blocks.get(key);
  if (block && block.kind !== "tool") block.done.value = true;
}

function levelOf(level: unknown): NoticeItem["level"] {
  return level === "warning" || level === "error" ? level : "info";
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
