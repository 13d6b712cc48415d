/** Defines what every tier shares: the channel to a guest, its limits, and the reasons for which it exits. */
import type { AnswerBounds } from "../sdk/checks.ts";
import { PreampError } from "../sdk/errors.ts";

/** Limits of one guest; names and defaults as under `isolation` and `limits` in the policy (src/docs/operating.md). */
export interface GuestLimits extends AnswerBounds {
  readonly memory_mb: number;
  readonly cpu_s: number;
  /** Timeout of the module's top level, and again of its `mount`. */
  readonly load_timeout_s: number;
  readonly max_tool_output_bytes: number;
  /** Timeout of calls whose caller sets none. */
  readonly call_timeout_s: number;
}

/** Reason for which a guest exited. */
export type ExitReason =
  /** It exited by itself, panicked, or received a signal from elsewhere. */
  | "crashed"
  /** It exceeded its memory limit. */
  | "memory"
  /** A call exceeded its processor time or its deadline. */
  | "timeout"
  /** It sent more bytes than allowed. */
  | "output"
  /** It broke the protocol, such as with a frame for a call that is not open. */
  | "violation"
  /** The host ended it, such as with its session. */
  | "ended";

/** Describes the exit of a guest. */
export interface GuestExit {
  readonly cause: ExitReason;
  /** Text for people, such as `its process ended with code 3`. */
  readonly detail: string;
}

/** Channel to one guest. */
export interface Channel {
  /** Sends a text. Texts for a guest that has exited are dropped. */
  send(text: string): void;
  /** Sets the milliseconds that the guest may work without another message from the host; 0 means no limit. Tiers without a watchdog ignore it. */
  watch(deadline_ms: number): void;
  /** Sets the listener. Called once, before anything is sent. */
  listen(listener: ChannelListener): void;
  /** Ends the guest; resolves when it has exited. The first exit that is reported counts. */
  kill(exit: GuestExit): Promise<void>;
  /** Resolves when the guest has exited. */
  readonly exited: Promise<GuestExit>;
  /** Resolves after the exit: true when nothing of the guest is left, false when its worker is still busy and cannot be terminated. */
  readonly stopped: Promise<boolean>;
}

/** Receives the texts of a channel. */
export interface ChannelListener {
  take(text: string): void;
  /** Returns the most bytes that the next text may have. */
  limit(): number;
  /** Returns a promise when the host is busy: the channel reads on after it resolves. */
  ready(): Promise<void> | undefined;
}

/** Codes of tool results (src/docs/http.md); `tool_crashed` for the other reasons. */
const CODES: Readonly<Partial<Record<ExitReason, PreampError["code"]>>> = {
  memory: "tool_memory_exceeded",
  timeout: "tool_timeout",
  output: "tool_output_exceeded",
};

/** Returns the error of calls to a guest that has exited. */
export function exitError({ cause, detail }: GuestExit, name: string): PreampError {
  const message = `Cannot use module "${name}": ${detail}`;
  return new PreampError(CODES[cause] ?? "tool_crashed", message, { facts: { cause } });
}
