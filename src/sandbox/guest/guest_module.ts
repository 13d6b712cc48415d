/**
 * Presents a module in a guest to the kernel: `mount` and `onSessionReady` become calls. Restarts a guest that exited at the next
 * call, at most three times in a session, and binds its new objects in place of the old ones.
 */
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { newIdSeed } from "../../sdk/guest_ids.ts";
import type { Coordinator, Module, ModuleType, MountReturn } from "../../sdk/types.ts";
import { serveRequest, type SessionHandles, sessionHandles } from "./guest_requests.ts";
import { ObjectTable } from "./object_table.ts";
import { exitError, type GuestExit } from "../channel.ts";
import { NotificationHandler } from "./notifications.ts";
import { EmissionTable } from "./emission_table.ts";
import type { GuestConnection } from "./guest_connection.ts";
import type { CallHost, GuestRequestOptions } from "./open_requests.ts";
import { GuestMounts, MAX_SHAPE_BYTES, POINT } from "./guest_mounts.ts";
import type { MountAnswer, Shape } from "../protocol.ts";
import type { CallBounds, ObjectCallOptions } from "./guest_proxies.ts";
import { snapshotOf } from "./session_snapshot.ts";
import { SessionDeltaSource } from "./session_delta.ts";

/** Options of {@link openGuestModule}. */
export interface GuestModuleOptions {
  /** Name of the module in messages. */
  readonly name: string;
  readonly type: ModuleType;
  /** The bundle. */
  readonly code: string;
  /** Parts of the SDK that the bundle uses. */
  readonly uses: readonly string[];
  readonly bounds: CallBounds;
  /** Milliseconds for the module's top level, and again for its `mount`. */
  readonly load_timeout_ms: number;
  /** Starts an empty guest. */
  spawn(): Promise<GuestConnection>;
  /** Adds a warning to the run. */
  warn(code: string, message: string): void;
}

/** A module in a guest. */
export interface OpenedGuest {
  readonly module: Module;
  /** Ends the guest for good. */
  close(): Promise<void>;
}

/** Most restarts of a guest in one session. */
const MAX_RESTARTS = 3;
const SESSION_ENDED: GuestExit = { cause: "ended", detail: "its session is over" };

/**
 * Starts a guest and links the module in it.
 * @throws {PreampError} {@link exitError}; or the error of the module's top level.
 */
export async function openGuestModule(options: GuestModuleOptions): Promise<OpenedGuest> {
  const guest = new GuestModule(options);
  try {
    return { module: await guest.open(), close: () => guest.close() };
  } catch (error) {
    await guest.close();
    throw error;
  }
}

class GuestModule {
  readonly #options: GuestModuleOptions;
  readonly #objects: ObjectTable;
  readonly #notifications: NotificationHandler;
  readonly #mounts: GuestMounts;
  readonly #emissions = new EmissionTable();
  /** Signals of the session that are forwarded to the guest. */
  readonly #followed = new WeakSet<AbortSignal>();
  #deltas = new SessionDeltaSource();
  #guest: GuestConnection | null = null;
  #starting: Promise<GuestConnection> | null = null;
  #restarts = 0;
  #closed = false;
  #coordinator: Coordinator | null = null;
  /** Default handles for the requests of a call. */
  #handles: SessionHandles | null = null;
  #config: JsonObject = {};
  #ready = false;

  constructor(options: GuestModuleOptions) {
    this.#options = options;
    const { name, type, bounds, warn } = options;
    const bindings = this.#objects = new ObjectTable((key, ...call) => this.#call(key, ...call));
    this.#notifications = new NotificationHandler({ name, objects: bindings, bounds, warn });
    const coordinator = () => this.#coordinator!; // nothing is mounted before it is set
    this.#mounts = new GuestMounts({ name, type, objects: bindings, bounds, warn, coordinator });
  }

  async open(): Promise<Module> {
    const { guest, exports } = await this.#start();
    this.#guest = guest;
    const { module, moduleType, __amplifier_module_type__ } = exports.data;
    const has = (name: string, other: string) =>
      exports.methods.includes(name) || exports.methods.includes(other);
    return {
      ...(isObject(module) ? { module } : {}),
      ...(moduleType === undefined ? {} : { moduleType }),
      ...(__amplifier_module_type__ === undefined ? {} : { __amplifier_module_type__ }),
      ...(has("mount", "mount")
        ? { mount: (coordinator: Coordinator, config: JsonObject) => this.#mount(coordinator, config) }
        : {}),
      ...(has("onSessionReady", "on_session_ready") ? { onSessionReady: () => this.#sessionReady() } : {}),
    } as unknown as Module; // checked by the mount
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#guest?.kill(SESSION_ENDED);
    await this.#starting?.catch(() => {}); // a restart ends what it started
  }

  async #start(): Promise<{ guest: GuestConnection; exports: Shape }> {
    const { spawn, code, uses, load_timeout_ms } = this.#options;
    const guest = await spawn();
    try {
      return { guest, exports: await guest.start(code, uses, load_timeout_ms) };
    } catch (error) {
      await guest.kill({ cause: "ended", detail: "it could not be linked" });
      throw error;
    }
  }

  /** Returns the running guest, and restarts one that has exited. */
  #live(): Promise<GuestConnection> | GuestConnection {
    if (this.#starting) return this.#starting;
    const guest = this.#guest;
    if (guest && guest.exit === null) return guest;
    const exit = guest?.exit ?? { cause: "ended", detail: "it did not start" } satisfies GuestExit;
    if (this.#closed || this.#restarts >= MAX_RESTARTS || this.#coordinator === null) {
      throw exitError(exit, this.#options.name);
    }
    this.#restarts++;
    const { name, warn } = this.#options;
    warn(
      "module_restarted",
      `Module "${name}" is restarted (${this.#restarts} of ${MAX_RESTARTS}): ${exit.detail}`,
    );
    return this.#starting = this.#restart().finally(() => this.#starting = null);
  }

  async #restart(): Promise<GuestConnection> {
    this.#deltas = new SessionDeltaSource();
    const { guest } = await this.#start();
    this.#guest = guest;
    this.#objects.beginRestart();
    try {
      if (this.#closed) throw exitError(SESSION_ENDED, this.#options.name);
      this.#mounts.returned(await this.#callMount(guest));
      if (this.#ready) await this.#callReady(guest);
      await this.#mounts.restoreContexts((key, ...call) => this.#callOn(guest, key, ...call));
      return guest;
    } catch (error) {
      await guest.kill({ cause: "ended", detail: "it could not be mounted again" });
      throw error;
    } finally {
      this.#objects.endRestart();
    }
  }

  async #mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
    this.#coordinator = coordinator;
    this.#config = config;
    const guest = this.#guest!; // set by open()
    return this.#mounts.returned(await this.#callMount(guest));
  }

  async #callMount(guest: GuestConnection): Promise<MountAnswer> {
    const coordinator = this.#coordinator!; // set by #mount
    const { name, type, load_timeout_ms, bounds } = this.#options;
    const snapshot = snapshotOf(coordinator, newIdSeed(coordinator, type), { name, config: this.#config });
    const args = [this.#config, snapshot, POINT[type]];
    const answered = await guest.call(0, "mount", args, {
      host: this.#host(sessionHandles(coordinator), true),
      deadline_ms: load_timeout_ms,
      max_bytes: Math.max(bounds.max_tool_output_bytes, MAX_SHAPE_BYTES * 2),
    });
    return isObject(answered) ? answered as unknown as MountAnswer : { kind: "nothing" };
  }

  async #sessionReady(): Promise<void> {
    this.#ready = true;
    await this.#callReady(await this.#live());
  }

  async #callReady(guest: GuestConnection): Promise<void> {
    const { load_timeout_ms } = this.#options;
    const refreshed = await guest.call(0, "onSessionReady", [], {
      host: this.#host(sessionHandles(this.#coordinator!), true),
      deadline_ms: load_timeout_ms,
      max_bytes: MAX_SHAPE_BYTES * 8,
    });
    if (isObject(refreshed)) this.#mounts.refresh(refreshed);
  }

  async #call(
    key: string,
    method: string,
    args: readonly unknown[],
    options: ObjectCallOptions,
  ): Promise<unknown> {
    return await this.#callOn(await this.#live(), key, method, args, options);
  }

  async #callOn(
    guest: GuestConnection,
    key: string,
    method: string,
    args: readonly unknown[],
    { handles, ...options }: ObjectCallOptions,
  ): Promise<unknown> {
    const ref = this.#objects.refOf(key);
    if (ref === undefined) {
      const detail = "it was restarted and did not mount this object again";
      throw exitError({ cause: "crashed", detail }, this.#options.name);
    }
    const call_handles = handles ?? (this.#handles ??= sessionHandles(this.#coordinator!)); // set by #mount
    this.#follow(call_handles.coordinator);
    const host = this.#host(call_handles, handles !== undefined);
    return await guest.call(ref, method, args, { ...options, host });
  }

  /** Forwards the session's cancellation to the guest. Each turn has new signals; each signal is followed once. */
  #follow({ cancellation }: Coordinator): void {
    for (const signal of [cancellation.any_signal, cancellation.signal]) {
      if (this.#followed.has(signal)) continue;
      this.#followed.add(signal);
      signal.addEventListener("abort", () => this.#guest?.sendCancellation(cancellation.state), {
        once: true,
      });
    }
  }

  /** @param whole Whether the guest also receives data that few modules read. */
  #host(handles: SessionHandles, whole: boolean): CallHost {
    return {
      view: () => this.#deltas.next(handles.coordinator, handles, whole),
      apply: (notifications) => {
        for (const notification of notifications) {
          this.#notifications.apply(notification, handles.coordinator);
        }
      },
      request: (target, method, args, options) => this.#serve(handles, target, method, args, options),
    };
  }

  async #serve(
    handles: SessionHandles,
    target: string,
    method: string,
    args: readonly unknown[],
    options: GuestRequestOptions,
  ): Promise<unknown> {
    if (target === "coordinator" && method === "mount") {
      const mounted = isObject(args[1]) ? args[1] : {};
      return await this.#mounts.mount(handles.coordinator, String(args[0]), mounted);
    }
    if (target === "function") return await this.#mounts.callFunction(method);
    return await serveRequest(handles, target, method, args, { ...options, emissions: this.#emissions });
  }
}
