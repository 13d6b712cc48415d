/** The parts of a run's transcript: see transcript.ts. */
import type { Approval } from "./objects.ts";

/** Characters of a running tool's output that are kept. */
export const MAX_TOOL_OUTPUT = 16_000;

/** A text of the person (`prompt`, `steering`) or of a model (`text`, `thinking`). */
export interface TextItem {
  readonly kind: "prompt" | "steering" | "text" | "thinking";
  /** Unique in the transcript. */
  readonly key: string;
  /** Number of the entry that began it. */
  readonly seq: number;
  readonly text: string;
  /** False while it is being written. */
  readonly done: boolean;
}

/**
 * How far a tool call is: a model writes it, a person is asked, it runs; it has a result, it failed, it was
 * refused, or the run ended before it did.
 */
export type ToolPhase = "writing" | "asking" | "running" | "done" | "failed" | "denied" | "stopped";

/** A tool call with its result. */
export interface ToolItem {
  readonly kind: "tool";
  readonly key: string;
  readonly seq: number;
  /** Id of the call, unique among the calls of one answer; null while a model writes it. */
  readonly call_id: string | null;
  readonly name: string;
  readonly phase: ToolPhase;
  /** Undefined while a model writes it. */
  readonly input: unknown;
  /** What the tool has said while it runs: the last {@linkcode MAX_TOOL_OUTPUT} characters. */
  readonly output: string;
  /** Characters at the beginning of `output` that are left out. */
  readonly output_dropped: number;
  /** The result, or the message of the failure or refusal; undefined before the end. */
  readonly result: unknown;
  /** The question about the call, with the preview of what it would do; null: no one was asked. */
  readonly question: Question | null;
  /** What a sub-agent does for the call; null: none. */
  readonly thread: Thread | null;
  /** Times of its start, without the wait for a person, and of its end; null before them. */
  readonly started: string | null;
  readonly ended: string | null;
  /** Number of the entry that ended it. */
  readonly end_seq: number | null;
}

/** A question that is about no tool call: of a hook, or whether a limit is raised. */
export interface QuestionItem {
  readonly kind: "question";
  readonly key: string;
  readonly seq: number;
  readonly question: Question;
}

/** A fact that stands between texts: a notice, a failure, a raised limit. */
export interface NoticeItem {
  readonly kind: "notice";
  readonly key: string;
  readonly seq: number;
  readonly level: "info" | "warning" | "error";
  readonly text: string;
}

/** A part of a conversation. */
export type Item = TextItem | ToolItem | QuestionItem | NoticeItem;

/** The conversation of one session in the run: its own, or that of a sub-agent. */
export interface Thread {
  readonly session_id: string;
  /** Name of the sub-agent; null: the run's own session. */
  readonly agent: string | null;
  /** In order; grows in place. */
  readonly items: readonly Item[];
}

/** A question to a person, with its answer once it is there. */
export interface Question extends Approval {
  /** What the call would do, such as a diff. */
  readonly preview?: string;
  readonly options: readonly (string | { label: string; effect: "allow" | "deny"; remember?: string })[];
  /** Set when the question is whether this limit is raised. */
  readonly limit?: {
    readonly name: string;
    readonly value: string | number;
    readonly used: string | number;
    readonly next: { readonly tokens: number; readonly cost_usd: string | null } | null;
  };
  /** The answer; absent while it is open. */
  readonly decision?: string;
  readonly reason?: string | null;
  readonly decided_by?: string | null;
  /** Times of the question and of its answer. */
  readonly created_at: string;
  readonly decided_at?: string;
}

/** Tokens and cost of a model call. */
export interface CallUsage {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly cache_read_tokens?: number;
  readonly total_tokens?: number;
  /** Decimal string; null or absent: not known. */
  readonly cost_usd?: string | null;
}

/** One call of a model. */
export interface ModelCall {
  /** Number of its `provider:request`. */
  readonly seq: number;
  readonly session_id: string;
  readonly provider: string;
  readonly started: string;
  /** Null while it lasts. */
  readonly ended: string | null;
  readonly end_seq: number | null;
  readonly usage: CallUsage | null;
  readonly error: string | null;
}

/** A compaction of a session's view. */
export interface Compaction {
  readonly seq: number;
  readonly session_id: string;
}

/** What is used of a limit. */
export interface Gauge {
  /** Name of the limit in the plan, such as `max_tool_calls`. */
  readonly name: string;
  /** In the unit of the limit: calls, tokens, dollars or seconds. */
  readonly used: number;
  /** The limit. */
  readonly value: number;
}

/** What all model calls of the run have used. */
export interface TranscriptUsage {
  /** Answered model calls. */
  readonly model_calls: number;
  /** Tool calls that ran. */
  readonly tool_calls: number;
  readonly total_tokens: number;
  /** Dollars, rounded as numbers are: the run object has the exact amount. Null without a known price. */
  readonly cost_usd: number | null;
}
