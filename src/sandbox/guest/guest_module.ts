/**
 * Presents a module in a guest to the kernel: `mount` and `onSessionReady` become calls. A guest that has
 * exited is not started again: each later call of the module fails.
 */
import { newIdSeed } from "../../sdk/ids.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Coordinator, Module, MountReturn } from "../../sdk/types.ts";
import type { GuestExit, MountAnswer, Shape } from "../protocol.ts";
import type { GuestConnection } from "./guest_connection.ts";
import { POINT } from "../../sdk/plan.ts";
import { applyNotification, GuestMounts, type GuestParts, MAX_SHAPE_BYTES } from "./guest_mounts.ts";
import { MAX_LARGE_BYTES, type ObjectCallOptions } from "./guest_proxies.ts";
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
  /** Ends the guest. */
  close(): Promise<void>;
}

const SESSION_ENDED: GuestExit = { cause: "ended", detail: "its session is over" };
const NOT_LINKED: GuestExit = { cause: "ended", detail: "it could not be linked" };

/**
 * Links a module in a guest that has started; ends the guest if that fails.
 * @throws {PreampError} when the guest exits; or the error of the module's top level.
 */
export async function openGuestModule(
  options: GuestModuleOptions,
  guest: GuestConnection,
): Promise<OpenedGuest> {
  const { code, uses, limits } = options;
  try {
    const exports = await guest.start(code, uses, limits.load_timeout_s * 1000);
    const module = new GuestModule(options, guest).exported(exports);
    return { module, close: () => guest.kill(SESSION_ENDED) };
  } catch (error) {
    await guest.kill(NOT_LINKED);
    throw error;
  }
}

class GuestModule {
  readonly #options: GuestModuleOptions;
  readonly #guest: GuestConnection;
  readonly #parts: GuestParts;
  readonly #mounts: GuestMounts;
  readonly #emissions = new EmissionTable();
  readonly #deltas = new SessionDeltaSource();
  /** Signals of the session that are forwarded to the guest. */
  readonly #followed = new WeakSet<AbortSignal>();
  #coordinator: Coordinator | null = null;

  constructor(options: GuestModuleOptions, guest: GuestConnection) {
    this.#options = options;
    this.#guest = guest;
    const objects = new ObjectTable((...call) => this.#call(...call));
    const coordinator = () => this.#coordinator!; // nothing is mounted before it is set
    this.#parts = { ...options, objects, coordinator };
    this.#mounts = new GuestMounts(this.#parts);
  }

  /** Returns the module with the exports that the guest reported. */
  exported({ data, methods }: Shape): Module {
    const { module, moduleType, __amplifier_module_type__ } = data;
    const has_ready = methods.includes("onSessionReady") || methods.includes("on_session_ready");
    return {
      ...(isObject(module) ? { module } : {}),
      ...(moduleType === undefined ? {} : { moduleType }),
      ...(__amplifier_module_type__ === undefined ? {} : { __amplifier_module_type__ }),
      ...(methods.includes("mount")
        ? { mount: (coordinator: Coordinator, config: JsonObject) => this.#mount(coordinator, config) }
        : {}),
      ...(has_ready ? { onSessionReady: () => this.#sessionReady() } : {}),
    } as unknown as Module; // checked by the mount
  }

  async #mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
    this.#coordinator = coordinator;
    const { module: name, type, limits, warn } = this.#options;
    const snapshot = snapshotOf(coordinator, newIdSeed(coordinator), { name, config });
    const max_bytes = Math.max(limits.max_tool_output_bytes, MAX_SHAPE_BYTES * 2);
    const answer = await this.#callModule("mount", [config, snapshot, POINT[type]], max_bytes);
    void this.#guest.exited.then(({ cause, detail }) => {
      if (cause === "ended") return;
      warn("module_ended", `Module "${name}" cannot be used again in this run: ${detail}`);
    });
    return this.#mounts.returned(isObject(answer) ? answer as unknown as MountAnswer : { kind: "nothing" });
  }

  async #sessionReady(): Promise<void> {
    const shapes = await this.#callModule("onSessionReady", [], MAX_SHAPE_BYTES * 8);
    if (isObject(shapes)) this.#mounts.refresh(shapes);
  }

  /** Returns the session for calls whose caller gives none. */
  get #handles(): SessionHandles {
    const coordinator = this.#coordinator!; // set by #mount
    return { coordinator, parts: coordinator };
  }

  async #callModule(method: string, args: readonly unknown[], max_bytes: number): Promise<unknown> {
    const host = this.#host(this.#handles, true);
    const deadline_ms = this.#options.limits.load_timeout_s * 1000;
    return await this.#guest.call(0, method, args, { host, deadline_ms, max_bytes });
  }

  /** Calls an object of the guest. */
  async #call(
    ref: number,
    method: string,
    args: readonly unknown[],
    { handles, ...options }: ObjectCallOptions,
  ): Promise<unknown> {
    const session = handles ?? this.#handles;
    this.#follow(session.coordinator);
    return await this.#guest.call(ref, method, args, {
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
      const send = () => this.#guest.sendCancellation(cancellation.state);
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
      return await serveRequest(
        handles,
        request,
        this.#emissions,
        (ref, args) => this.#call(ref, "", args, { handles, max_bytes: MAX_LARGE_BYTES }),
      );
    }
    const mounted = isObject(args[1]) ? args[1] : {};
    return await this.#mounts.mount(handles.coordinator, String(args[0]), mounted);
  }
}
