/** A wire to a guest, whatever tier it runs in: texts there and back, and how it ended. Types, and the words for an end. */
import { PreampError } from "../sdk/errors.ts";

/** Why a guest is no more. */
export type ExitReason =
  /** It ended by itself: exit, panic, a signal from elsewhere. */
  | "crashed"
  /** It had more memory than it may. */
  | "memory"
  /** A call took more processor time, or more time, than it may. */
  | "timeout"
  /** It said more than it may. */
  | "output"
  /** It broke the protocol: a frame for no call, bytes that are no frame. */
  | "violation"
  /** We ended it: its session is over. */
  | "ended";

/** The end of a guest. */
export interface GuestExit {
  readonly cause: ExitReason;
  /** For people, such as `exit code 3`. */
  readonly detail: string;
}

/** A wire to one guest. */
export interface Channel {
  /** Sends a text; what cannot be sent any more is dropped. */
  send(text: string): void;
  /** Says how long the guest may work from now on without a word from us, in ms; 0: for ever. Tiers without a watchdog ignore it. */
  watch(deadline_ms: number): void;
  /** Whom texts are given to, and how many bytes the next one may have. Set once, before anything is sent. */
  listen(listener: ChannelListener): void;
  /** Ends the guest; resolves when nothing of it is left. The first cause that is given is the one that counts. */
  kill(death: GuestExit): Promise<void>;
  /** Resolves when the guest is gone. */
  readonly exited: Promise<GuestExit>;
  /** Resolves when it is sure what is left of a guest that is gone: true for nothing, false when it works on and nobody can end it. */
  readonly stopped: Promise<boolean>;
}

/** The other side of a channel. */
export interface ChannelListener {
  take(text: string): void;
  /** Bytes that one text may have now. */
  limit(): number;
  /** A promise: nothing more is taken before it resolves. */
  ready(): Promise<void> | undefined;
}

const CODES: Readonly<Record<ExitReason, PreampError["code"]>> = {
  crashed: "tool_crashed",
  memory: "tool_memory_exceeded",
  timeout: "tool_timeout",
  output: "tool_output_exceeded",
  violation: "tool_crashed",
  ended: "tool_crashed",
};

/** Returns the error that a call of a dead guest is answered with (http.md, Problems: the codes of tool results). */
export function exitError(death: GuestExit, name: string): PreampError {
  return new PreampError(CODES[death.cause], `Cannot use module "${name}": ${death.detail}`, {
    facts: { cause: death.cause },
  });
}
