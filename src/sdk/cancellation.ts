/** The cancellation token of a session. Graceful: running tools finish. Immediate: they are abandoned. */
import { AbortController, Map, Set } from "./primordials.ts";
import { withSnakeCase } from "./snake_case_aliases.ts";

/** State of a cancellation. */
export type CancellationState = "none" | "graceful" | "immediate";

/**
 * Cancels a session. Loops read it between steps, guards before each call, and pending operations listen to
 * its signal.
 */
export class CancellationToken {
  #state: CancellationState = "none";
  /** These are created on first use: most sessions need few of them. */
  #immediate: AbortController | null = null;
  #any: AbortController | null = null;
  #children: Set<CancellationToken> | null = null;
  #callbacks: Set<() => unknown> | null = null;
  #running: Map<string, string> | null = null;

  /** `none`, `graceful` or `immediate`. */
  get state(): CancellationState {
    return this.#state;
  }

  /** Whether any cancellation was requested. */
  get is_cancelled(): boolean {
    return this.#state !== "none";
  }

  /** Whether running work may finish. */
  get is_graceful(): boolean {
    return this.#state === "graceful";
  }

  /** Whether running work must be abandoned. */
  get is_immediate(): boolean {
    return this.#state === "immediate";
  }

  /** Aborts on immediate cancellation. */
  get signal(): AbortSignal {
    this.#immediate ??= controllerOf(this.#state === "immediate");
    return this.#immediate.signal;
  }

  /** Aborts on any cancellation: for waits, not for running work. */
  get any_signal(): AbortSignal {
    this.#any ??= controllerOf(this.#state !== "none");
    return this.#any.signal;
  }

  /** Ids of the running tool calls. */
  get running_tools(): string[] {
    return [...this.#running?.keys() ?? []];
  }

  /** Names of the running tools. */
  get running_tool_names(): string[] {
    return [...this.#running?.values() ?? []];
  }

  /** Requests graceful cancellation; true only when nothing was requested before. */
  requestGraceful(): boolean {
    if (this.#state !== "none") return false;
    this.#state = "graceful";
    this.#any?.abort();
    for (const child of this.#children ?? []) child.requestGraceful();
    return true;
  }

  /** Requests immediate cancellation; false when it was requested before. */
  requestImmediate(): boolean {
    if (this.#state === "immediate") return false;
    this.#state = "immediate";
    this.#any?.abort();
    this.#immediate?.abort();
    for (const child of this.#children ?? []) child.requestImmediate();
    return true;
  }

  /**
   * Returns to `none`, with new signals; children and callbacks stay. The session calls it at the start of a
   * turn.
   */
  reset(): void {
    this.#state = "none";
    this.#running?.clear();
    if (this.#any?.signal.aborted) this.#any = null;
    if (this.#immediate?.signal.aborted) this.#immediate = null;
  }

  /** Records that a tool call started. */
  registerToolStart(id: string, name: string): void {
    (this.#running ??= new Map()).set(id, name);
  }

  /** Records that a tool call ended. */
  registerToolComplete(id: string): void {
    this.#running?.delete(id);
  }

  /** Makes a child session follow: it takes the current state and every later request. */
  registerChild(child: CancellationToken): void {
    (this.#children ??= new Set()).add(child);
    if (this.#state === "graceful") child.requestGraceful();
    else if (this.#state === "immediate") child.requestImmediate();
  }

  /** Removes a child: it no longer follows. */
  unregisterChild(child: CancellationToken): void {
    this.#children?.delete(child);
  }

  /** Registers a callback for {@link triggerCallbacks}; returns a function that removes it. */
  onCancel(callback: () => unknown): () => void {
    (this.#callbacks ??= new Set()).add(callback);
    return () => this.#callbacks?.delete(callback);
  }

  /** Runs all callbacks, even when one fails. Resolves to the failures. */
  async triggerCallbacks(): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const callback of [...this.#callbacks ?? []]) {
      try {
        await callback();
      } catch (error) {
        failures.push(error);
      }
    }
    return failures;
  }
}

/** Returns a controller in the token's state. */
function controllerOf(aborted: boolean): AbortController {
  const controller = new AbortController();
  if (aborted) controller.abort();
  return controller;
}

withSnakeCase(CancellationToken);
