/** The parts of a session, which its modules share through their coordinators, and the end of the session. */
import { errorMessage } from "../sdk/errors.ts";
import { deepFreeze, isThenable, type JsonObject, toPlainObject } from "../sdk/json.ts";
import type { Cleanup, GrantedPermissions } from "../sdk/types.ts";
import { Hooks } from "./hooks.ts";
import { Mounts } from "./mounts.ts";
import { Steps } from "./steps.ts";
import { withDeadline } from "./timeouts.ts";
import type { SessionContext } from "./session_context.ts";

/** Parts of a session that its modules share; new ones have nothing mounted. */
export class SessionParts {
  readonly mounts = new Mounts();
  contributors: { channel: string; name: string; callback: () => unknown }[] = [];
  readonly cleanups: { module_id: string; cleanup: Cleanup }[] = [];
  /**
   * Functions that stop the guests of sandboxed modules. Called after all cleanups, because a cleanup may
   * call another module.
   */
  readonly guests: (() => Promise<void>)[] = [];
  readonly steps: Steps;
  readonly hooks: Hooks;
  readonly config: JsonObject;
  /** What modules publish for each other: the runtime's own capabilities, and those that modules register. */
  readonly capabilities: Map<string, unknown>;

  constructor(readonly session: SessionContext, options: PartsOptions) {
    const { mounts } = this;
    this.hooks = session.hooks = new Hooks(session);
    this.steps = session.steps = new Steps(session, this.hooks, mounts);
    this.config = frozenConfig(options.written);
    this.capabilities = givenCapabilities(session, options);
  }
}

/** Usage of one answered request, with the number of messages in the history at that time. */
export interface LoggedUsage {
  readonly messages: number;
  readonly input_tokens: number;
}

/** Options of {@link SessionParts}. */
export interface PartsOptions {
  /** The plan as its author wrote it; modules receive it as `coordinator.config`. */
  written?: JsonObject;
  /** Usage that providers reported in earlier runs, for the context's token counter. */
  usages?: readonly LoggedUsage[];
  /** Capabilities that exist before the first module is mounted, such as `session.spawn`. */
  capabilities?: Readonly<Record<string, unknown>>;
}

/** Written plan → frozen copy. Compiled plans are frozen, so that all their runs share one copy. */
const frozen_configs = new WeakMap<JsonObject, JsonObject>();

/** Returns a frozen copy of the written plan, which modules receive as `coordinator.config`. */
function frozenConfig(written: JsonObject = {}): JsonObject {
  let config = frozen_configs.get(written);
  if (config) return config;
  config = deepFreeze(toPlainObject(written));
  if (Object.isFrozen(written)) frozen_configs.set(written, config); // else it may change before the next session
  return config;
}

/** Capability by which a module keeps the bytes of a file that it changes. */
export const KEEP_BEFORE = "session.keep_before";
/** Capabilities that get files and secrets of others: no module takes their place. */
export const HOLDING_SECRETS: ReadonlySet<string> = new Set([KEEP_BEFORE, "session.redact"]);

/** Returns the capabilities that exist before the first module is mounted. */
function givenCapabilities(
  session: SessionContext,
  { capabilities, usages = [] }: PartsOptions,
): Map<string, unknown> {
  const { host } = session;
  const redact = (event: unknown, data: unknown) => host.redactEvent?.(String(event), toPlainObject(data));
  const given = new Map<string, unknown>();
  given.set("session.usages", () => usages);
  given.set("session.last_usage", () => session.last_usage);
  if (host.redactEvent) given.set("session.redact", redact);
  if (host.keepBefore) {
    // a coordinator adds what its module may write
    const keep = (change: unknown, write: GrantedPermissions["write"]) =>
      host.keepBefore?.(toPlainObject(change), write);
    given.set(KEEP_BEFORE, keep);
  }
  for (const name in capabilities) given.set(name, capabilities[name]);
  return given;
}

/**
 * Runs all cleanups in reverse order, each with a timeout. Resolves to the data of `session:cleanup`.
 */
export async function runCleanups(shared: SessionParts): Promise<JsonObject> {
  const failed: { module_id: string; error: string }[] = [];
  const cleanups = shared.cleanups.splice(0).reverse();
  for (const { module_id, cleanup } of cleanups) {
    try {
      await runCleanup(shared, cleanup);
    } catch (error) {
      failed.push({ module_id, error: errorMessage(error) });
    }
  }
  return { ran: cleanups.length - failed.length, failed };
}

/** Stops all guests of the session concurrently; a guest that cannot be stopped becomes a warning. */
export async function endGuests(shared: SessionParts): Promise<void> {
  const ended = await Promise.allSettled(shared.guests.splice(0).map((end) => end()));
  for (const result of ended) {
    if (result.status === "rejected") {
      shared.session.host.warn("guest_not_ended", errorMessage(result.reason));
    }
  }
}

/** Runs one cleanup with the timeout `cleanup_timeout_s`. */
export async function runCleanup(shared: SessionParts, cleanup: Cleanup): Promise<void> {
  const { host, limits } = shared.session;
  const returned = cleanup();
  if (!isThenable(returned)) return;
  await withDeadline(
    returned,
    limits.cleanup_timeout_s * 1000,
    host.clock,
    () => new Error(`not finished within ${limits.cleanup_timeout_s} s`),
  );
}
