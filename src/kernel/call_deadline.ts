/** The deadline of one tool call, `tool_timeout_s`. */
import { PreampError } from "../sdk/errors.ts";
import type { Host } from "./host.ts";
import type { KernelLimits, SessionContext } from "./session_context.ts";
import type { StepAbort } from "./timeouts.ts";

/** Session of a call. Its step aborts on immediate cancellation and at the run's `max_duration_s`. */
interface DeadlineSession extends Pick<SessionContext, "step"> {
  readonly host: Pick<Host, "clock">;
  readonly limits: Pick<KernelLimits, "tool_timeout_s" | "cleanup_timeout_s" | "approval_timeout">;
}

/**
 * The deadline of one tool call. Its clock is paused while a sub-agent of the call runs, because the
 * sub-agent has limits of its own, and while a person is asked within the call.
 */
export class CallDeadline {
  readonly #session: DeadlineSession;
  readonly #tool: string;
  readonly #step: StepAbort;
  readonly #controller = new AbortController();
  readonly #abort = (reason: unknown): void => {
    if (this.#is_aborted) return;
    this.#stopClock();
    this.#is_aborted = true;
    this.#controller.abort(reason);
    this.#end();
  };
  #is_aborted = false;
  /** Rejects the promise of {@link wait}; null while the call does not wait. */
  #abandon: ((reason: unknown) => void) | null = null;
  /** Stops the timer of the deadline, or of the time to end after an abort. */
  #stop_timer: (() => void) | null = null;
  #left_ms: number;
  #started_at = 0;
  #pauses = 0;
  /** Pauses of sub-agents, which have time to end after an abort. */
  #agents = 0;
  /** Milliseconds that the call was paused for persons. */
  #asked_ms = 0;

  /** @param tool Name of the tool, for the error of the deadline. */
  constructor(session: DeadlineSession, tool: string) {
    this.#session = session;
    this.#tool = tool;
    this.#step = session.step; // the turn's: a later turn has another
    this.#left_ms = session.limits.tool_timeout_s * 1000;
    this.#step.add(this.#abort);
  }

  /** Aborts when the call must end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Settles as the call does, or rejects when the call must end first. */
  wait<T>(call: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#abandon = reject;
      Promise.resolve(call).then(resolve, reject); // a module may return any thenable
      if (this.#is_aborted) this.#end();
      else this.#startSoon();
    });
  }

  /**
   * Stops the clock until the returned function is called. Pauses may overlap.
   * @param is_agent Whether the call waits for a sub-agent; else for a person: then without effect after
   * `approval_timeout`, so that a tool cannot ask for ever.
   */
  pause(is_agent: boolean): () => void {
    const { host: { clock }, limits: { approval_timeout } } = this.#session;
    if (!is_agent && this.#asked_ms >= approval_timeout * 1000) return () => {};
    const paused_at = clock.monotonic();
    this.#pauses++;
    if (is_agent) this.#agents++;
    if (!this.#is_aborted) this.#stopClock();
    let paused = true;
    return () => {
      if (!paused) return;
      paused = false;
      this.#pauses--;
      if (is_agent) this.#agents--;
      else this.#asked_ms += clock.monotonic() - paused_at;
      this.#startClock();
    };
  }

  /** Removes the timer after the call has ended; the call is no longer aborted. */
  stop(): void {
    this.#step.remove(this.#abort);
    this.#stop_timer?.();
    this.#abandon = this.#stop_timer = null;
  }

  /** Abandons an aborted call that waits, at once or after the time that a sub-agent has to end. */
  #end(): void {
    const { host: { clock }, limits } = this.#session;
    const abandon = () => this.#abandon?.(this.signal.reason);
    if (this.#agents === 0) abandon();
    else if (this.#abandon !== null) this.#stop_timer = clock.later(limits.cleanup_timeout_s * 1000, abandon);
  }

  /** Starts the clock if the call has not ended after two microtasks: most calls that answer at once have. */
  async #startSoon(): Promise<void> {
    await null;
    await null;
    this.#startClock();
  }

  #startClock(): void {
    const { host: { clock }, limits: { tool_timeout_s } } = this.#session;
    const is_waiting = this.#abandon !== null && !this.#is_aborted;
    if (!is_waiting || tool_timeout_s <= 0 || this.#pauses > 0 || this.#stop_timer !== null) return;
    this.#started_at = clock.monotonic();
    const message = `Tool "${this.#tool}" timed out: no result within ${tool_timeout_s} s (tool_timeout_s)`;
    const end = () => this.#abort(new PreampError("tool_timeout", message));
    if (this.#left_ms <= 0) end(); // a timer would be stopped by the next pause
    else this.#stop_timer = clock.later(this.#left_ms, end);
  }

  #stopClock(): void {
    if (this.#stop_timer === null) return;
    this.#stop_timer();
    this.#stop_timer = null;
    this.#left_ms = Math.max(0, this.#left_ms - (this.#session.host.clock.monotonic() - this.#started_at));
  }
}
