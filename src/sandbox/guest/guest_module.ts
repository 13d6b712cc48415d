/**
 * Presents a module in a guest to the kernel: `mount` and `onSessionReady` become calls. Restarts a guest
 * that exited at the next call, at most three times in a session, and binds its new objects in place of the
 * old ones.
 */
import { newIdSeed } from "../../sdk/ids.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Coordinator, Module, MountReturn } from "../../sdk/types.ts";
import { exitError, type GuestExit, type MountAnswer, type Shape } from "../protocol.ts";
import type { GuestConnection } from "./guest_connection.ts";
import { POINT } from "../../sdk/plan.ts";
import { applyNotification, GuestMounts, type GuestParts, MAX_SHAPE_BYTES } from "./guest_mounts.ts";
import type { ObjectCallOptions } from "./guest_proxies.ts";
import { EmissionTable, serveRequest, type SessionHandles } from "./guest_requests.ts";
import { ObjectTable } from "./object_table.ts";
import type { CallHost, GuestRequest } from "./open_requests.ts";
import { SessionDeltaSource, snapshotOf } from "./session_view.ts";

/** Module of {@link openGuestModule}. */
export interface GuestModuleOptions extends Omit<GuestParts, "objects" | "coordinator"> {
  /** The bundle. */
  readonly code: string;
  /** Parts of the SDK that the bundle uses. */
  readonly uses: readonly string[];
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

/** Starts an empty guest. */
type Spawn = () => Promise<GuestConnection>;

/**
 * Starts a guest and links the module in it.
 * @throws {PreampError} {@link exitError}; or the error of the module's top level.
 */
export async function openGuestModule(options: GuestModuleOptions, spawn: Spawn): Promise<OpenedGuest> {
  const guest = new GuestModule(options, spawn);
  return { module: await guest.open(), close: () => guest.close() };
}

class GuestModule {
  readonly #options: GuestModuleOptions;
  readonly #spawn: Spawn;
  readonly #parts: GuestParts;
  readonly #objects: ObjectTable;
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
  #config: JsonObject = {};
  #ready = false;

  constructor(options: GuestModuleOptions, spawn: Spawn) {
    this.#options = options;
    this.#spawn = spawn;
    this.#objects = new ObjectTable(async (...call) => await this.#call(await this.#live(), ...call));
    const coordinator = () => this.#coordinator!; // nothing is mounted before it is set
    this.#parts = { ...options, objects: this.#objects, coordinator };
    this.#mounts = new GuestMounts(this.#parts);
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
    const { code, uses } = this.#options;
    const guest = await this.#spawn();
    try {
      return { guest, exports: await guest.start(code, uses, this.#load_timeout_ms) };
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
      throw exitError(exit, this.#options.module);
    }
    this.#restarts++;
    const { module, warn } = this.#options;
    const count = `${this.#restarts} of ${MAX_RESTARTS}`;
    warn("module_restarted", `Module "${module}" is restarted (${count}): ${exit.detail}`);
    return this.#starting = this.#restart().finally(() => this.#starting = null);
  }

  async #restart(): Promise<GuestConnection> {
    this.#deltas = new SessionDeltaSource();
    const { guest } = await this.#start();
    this.#guest = guest;
    this.#objects.beginRestart();
    try {
      if (this.#closed) throw exitError(SESSION_ENDED, this.#options.module);
      this.#mounts.returned(await this.#callMount(guest));
      if (this.#ready) await this.#callReady(guest);
      await this.#mounts.restoreContexts((...call) => this.#call(guest, ...call));
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
    return this.#mounts.returned(await this.#callMount(this.#guest!)); // set by open()
  }

  async #callMount(guest: GuestConnection): Promise<MountAnswer> {
    const { module: name, type, limits } = this.#options;
    const coordinator = this.#coordinator!; // set by #mount
    const snapshot = snapshotOf(coordinator, newIdSeed(coordinator, type), { name, config: this.#config });
    const max_bytes = Math.max(limits.max_tool_output_bytes, MAX_SHAPE_BYTES * 2);
    const args = [this.#config, snapshot, POINT[type]];
    const answer = await this.#callModule(guest, "mount", args, max_bytes);
    return isObject(answer) ? answer as unknown as MountAnswer : { kind: "nothing" };
  }

  async #sessionReady(): Promise<void> {
    this.#ready = true;
    await this.#callReady(await this.#live());
  }

  async #callReady(guest: GuestConnection): Promise<void> {
    const shapes = await this.#callModule(guest, "onSessionReady", [], MAX_SHAPE_BYTES * 8);
    if (isObject(shapes)) this.#mounts.refresh(shapes);
  }

  get #load_timeout_ms(): number {
    return this.#options.limits.load_timeout_s * 1000;
  }

  /** Returns the session for calls whose caller gives none. */
  get #handles(): SessionHandles {
    const coordinator = this.#coordinator!; // set by #mount
    return { coordinator, parts: coordinator };
  }

  async #callModule(
    guest: GuestConnection,
    method: string,
    args: readonly unknown[],
    max_bytes: number,
  ): Promise<unknown> {
    const host = this.#host(this.#handles, true);
    return await guest.call(0, method, args, { host, deadline_ms: this.#load_timeout_ms, max_bytes });
  }

  /** Calls an object of a guest. */
  async #call(
    guest: GuestConnection,
    key: string,
    method: string,
    args: readonly unknown[],
    { handles, ...options }: ObjectCallOptions,
  ): Promise<unknown> {
    const ref = this.#objects.refOf(key);
    if (ref === undefined) {
      const detail = "it was restarted and did not mount this object again";
      throw exitError({ cause: "crashed", detail }, this.#options.module);
    }
    const session = handles ?? this.#handles;
    this.#follow(session.coordinator);
    return await guest.call(ref, method, args, {
      ...options,
      host: this.#host(session, handles !== undefined),
    });
  }

  /**
   * Forwards the session's cancellation to the guest. Each turn has new signals; each signal is followed
   * once.
   */
  #follow({ cancellation }: Coordinator): void {
    for (const signal of [cancellation.any_signal, cancellation.signal]) {
      if (this.#followed.has(signal)) continue;
      this.#followed.add(signal);
      const send = () => this.#guest?.sendCancellation(cancellation.state);
      signal.addEventListener("abort", send, { once: true });
    }
  }

  /** @param whole Whether the guest also receives data that few modules read. */
  #host(handles: SessionHandles, whole: boolean): CallHost {
    const { coordinator, parts } = handles;
    return {
      view: () => this.#deltas.next(coordinator, parts, whole),
      apply: (notifications) => {
        for (const one of notifications) applyNotification(one, coordinator, this.#parts);
      },
      request: (request) => this.#serve(handles, request),
    };
  }

  async #serve(handles: SessionHandles, request: GuestRequest): Promise<unknown> {
    const { target, method, args } = request;
    if (target === "function") return await this.#mounts.callFunction(method);
    if (target !== "coordinator" || method !== "mount") {
      return await serveRequest(handles, request, this.#emissions);
    }
    const mounted = isObject(args[1]) ? args[1] : {};
    return await this.#mounts.mount(handles.coordinator, String(args[0]), mounted);
  }
}
