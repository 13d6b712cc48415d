/**
 * A module that runs elsewhere, as the kernel mounts it: `mount` and `onSessionReady` are calls, what it mounts and registers is
 * done to the real coordinator with stand-ins. A guest that died is started again at the next use, a few times, and its new
 * objects take the places of the old ones.
 */
import { errorMessage } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { resolvePoint } from "../sdk/mount_points.ts";
import type { Coordinator, Disposer, Module, ModuleType, MountReturn, Provider } from "../sdk/types.ts";
import { answer, type Surroundings, surroundingsOf } from "./answers.ts";
import { type Death, deathError } from "./channel.ts";
import type { AskedOptions, CallHost, Guest } from "./guest.ts";
import { readShape } from "./guest.ts";
import type { Effect, MountAnswer, Shape } from "./protocol.ts";
import {
  type CallBounds,
  contextStandIn,
  functionStandIn,
  handlerStandIn,
  type ObjectCall,
  type ObjectCallOptions,
  objectStandIn,
  orchestratorStandIn,
  providerStandIn,
  toolStandIn,
} from "./stand_ins.ts";
import { staticsOf } from "./statics.ts";
import { ViewSource } from "./view.ts";

/** What a guest module is made with. */
export interface GuestModuleOptions {
  /** What messages call the module. */
  readonly name: string;
  readonly type: ModuleType;
  /** The bundle, and the parts of the SDK it reads. */
  readonly code: string;
  readonly uses: readonly string[];
  readonly bounds: CallBounds;
  /** Milliseconds for the module's top level, and for its mount. */
  readonly load_timeout_ms: number;
  /** Starts an empty guest. */
  spawn(): Promise<Guest>;
  /** Told what has no event of its own. */
  warn(code: string, message: string): void;
}

/** A module that runs elsewhere. */
export interface OpenedGuest {
  readonly module: Module;
  /** Ends the guest; nothing starts it again. */
  close(): Promise<void>;
}

/** Times that a guest is started again in one session. */
const MAX_RESTARTS = 3;
/** Things that one module may mount, register or publish. */
const MAX_OBJECTS = 256;
/** Bytes of what one object says of itself: its description and schema. */
const MAX_SHAPE_BYTES = 128 * 1024;
const MAX_NAME = 128;

const POINT: Readonly<Record<ModuleType, string>> = {
  orchestrator: "orchestrator",
  context: "context",
  provider: "providers",
  tool: "tools",
  hook: "hooks",
  resolver: "module-source-resolver",
};

/**
 * Starts a guest and links the module in it.
 * @throws {PreampError} {@link deathError}; or what the module's top level threw.
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
  /** Where each object stands in the guest that runs now. */
  readonly #refs = new Map<string, number>();
  /** What was done for the module, by the same keys. */
  readonly #done = new Map<string, { dispose?: Disposer }>();
  /** What an object says of itself, by key: told anew after `onSessionReady`. */
  readonly #data = new Map<string, JsonObject>();
  /** Functions of the host that the guest may call. */
  readonly #functions = new Map<string, () => unknown>();
  /** Signals of the session whose abort the guest is told. */
  readonly #followed = new WeakSet<AbortSignal>();
  #counts = new Map<string, number>();
  #views = new ViewSource();
  #guest: Guest | null = null;
  #starting: Promise<Guest> | null = null;
  #restarts = 0;
  #closed = false;
  #coordinator: Coordinator | null = null;
  /** What calls find around them that say nothing else. */
  #around: Surroundings | null = null;
  #config: JsonObject = {};
  #ready = false;
  /** Whether what the guest does was done before: a new guest only takes the places of the old one. */
  #again = false;

  constructor(options: GuestModuleOptions) {
    this.#options = options;
  }

  async open(): Promise<Module> {
    const { guest, exports } = await this.#start();
    this.#guest = guest;
    const { module, moduleType, __amplifier_module_type__ } = exports.data;
    const has = (name: string, other: string) => name in exports.methods || other in exports.methods;
    return {
      ...(isObject(module) ? { module } : {}),
      ...(moduleType === undefined ? {} : { moduleType }),
      ...(__amplifier_module_type__ === undefined ? {} : { __amplifier_module_type__ }),
      ...(has("mount", "mount")
        ? { mount: (coordinator: Coordinator, config: JsonObject) => this.#mount(coordinator, config) }
        : {}),
      ...(has("onSessionReady", "on_session_ready") ? { onSessionReady: () => this.#sessionReady() } : {}),
    } as unknown as Module; // the mount checks what it is
  }

  async close(): Promise<void> {
    this.#closed = true;
    const starting = this.#starting;
    await this.#guest?.kill({ cause: "ended", detail: "its session is over" });
    await starting?.then((guest) => guest.kill({ cause: "ended", detail: "its session is over" }), () => {});
  }

  async #start(): Promise<{ guest: Guest; exports: Shape }> {
    const { spawn, code, uses, load_timeout_ms } = this.#options;
    const guest = await spawn();
    try {
      return { guest, exports: await guest.start(code, uses, load_timeout_ms) };
    } catch (error) {
      await guest.kill({ cause: "ended", detail: "it could not be linked" });
      throw error;
    }
  }

  /** The guest, started again when it died. */
  #live(): Promise<Guest> | Guest {
    const guest = this.#guest;
    if (guest && guest.death === null) return guest;
    if (this.#starting) return this.#starting;
    const death = guest?.death ?? { cause: "ended", detail: "it did not start" } satisfies Death;
    if (this.#closed || this.#restarts >= MAX_RESTARTS || this.#coordinator === null) {
      throw deathError(death, this.#options.name);
    }
    this.#restarts++;
    const { name, warn } = this.#options;
    warn(
      "module_restarted",
      `Module "${name}" is started again (${this.#restarts} of ${MAX_RESTARTS}): ${death.detail}`,
    );
    return this.#starting = this.#restart().finally(() => this.#starting = null);
  }

  async #restart(): Promise<Guest> {
    this.#refs.clear();
    this.#counts = new Map();
    this.#views = new ViewSource();
    const { guest } = await this.#start();
    this.#again = true;
    try {
      await this.#callMount(guest);
      if (this.#ready) await this.#callReady(guest);
    } catch (error) {
      await guest.kill({ cause: "ended", detail: "it could not be mounted again" });
      throw error;
    } finally {
      this.#again = false;
    }
    if (this.#closed) throw deathError({ cause: "ended", detail: "its session is over" }, this.#options.name);
    return this.#guest = guest;
  }

  async #mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
    this.#coordinator = coordinator;
    this.#config = config;
    const guest = this.#guest!; // open() resolved
    return this.#returned(await this.#callMount(guest));
  }

  async #callMount(guest: Guest): Promise<MountAnswer> {
    const coordinator = this.#coordinator!; // set by #mount
    const { type, load_timeout_ms, bounds } = this.#options;
    const statics = staticsOf(coordinator, coordinator.newId("m").slice(-8));
    const args = [this.#config, statics, POINT[type]];
    const answered = await guest.call(0, "mount", args, {
      host: this.#host(surroundingsOf(coordinator), true),
      deadline_ms: load_timeout_ms,
      max_bytes: Math.max(bounds.max_tool_output_bytes, MAX_SHAPE_BYTES * 2),
    });
    return isObject(answered) ? answered as unknown as MountAnswer : { kind: "nothing" };
  }

  async #sessionReady(): Promise<void> {
    this.#ready = true;
    await this.#callReady(await this.#live());
  }

  async #callReady(guest: Guest): Promise<void> {
    const { load_timeout_ms } = this.#options;
    const refreshed = await guest.call(0, "onSessionReady", [], {
      host: this.#host(surroundingsOf(this.#coordinator!), true),
      deadline_ms: load_timeout_ms,
      max_bytes: MAX_SHAPE_BYTES * 8,
    });
    if (!isObject(refreshed)) return;
    for (const [key, ref] of this.#refs) {
      const shape = readShape(refreshed[ref]);
      if (shape && this.#data.has(key)) this.#data.set(key, shape.data);
    }
  }

  /** What `mount` returned, for the kernel to read. */
  #returned(answered: MountAnswer): MountReturn {
    const { bounds } = this.#options;
    switch (answered.kind) {
      case "function":
        return functionStandIn(this.#bind("returned", answered.ref), bounds);
      case "object": {
        const shape = readShape(answered.shape) ?? EMPTY;
        return objectStandIn(shape, this.#bind("returned", answered.ref), bounds);
      }
      case "instance": {
        const instance = this.#standIn(POINT[this.#options.type], "instance", answered.ref, answered.shape);
        const rest = readShape(answered.rest_shape) ?? EMPTY;
        const others = objectStandIn(rest, this.#bind("returned", answered.rest), bounds);
        return { ...others, ...instance };
      }
      case "other":
        return answered.value as MountReturn; // the kernel says what is wrong with it
      default:
        return undefined;
    }
  }

  /** Says where an object of the guest stands; returns how it is called. */
  #bind(key: string, ref: unknown): ObjectCall {
    if (!Number.isSafeInteger(ref)) throw new TypeError("an object without a number");
    if (this.#refs.size >= MAX_OBJECTS) throw new TypeError(`more than ${MAX_OBJECTS} objects`);
    this.#refs.set(key, ref as number); // a whole number
    return (method, args, options) => this.#call(key, method, args, options);
  }

  async #call(
    key: string,
    method: string,
    args: readonly unknown[],
    { around, ...options }: ObjectCallOptions,
  ): Promise<unknown> {
    const guest = await this.#live();
    const ref = this.#refs.get(key);
    if (ref === undefined) {
      const detail = "it was started again, and did not mount this anew";
      throw deathError({ cause: "crashed", detail }, this.#options.name);
    }
    const surroundings = around ?? (this.#around ??= surroundingsOf(this.#coordinator!));
    this.#follow(surroundings.coordinator);
    return await guest.call(ref, method, args, {
      ...options,
      host: this.#host(surroundings, around !== undefined),
    });
  }

  /** Tells the guest when the session is cancelled: once for each of its signals, of which a turn has new ones. */
  #follow({ cancellation }: Coordinator): void {
    for (const signal of [cancellation.any_signal, cancellation.signal]) {
      if (this.#followed.has(signal)) continue;
      this.#followed.add(signal);
      signal.addEventListener("abort", () => this.#guest?.tellCancellation(cancellation.state), {
        once: true,
      });
    }
  }

  /** @param whole Whether the guest is told everything there is, and not only what most modules ask for. */
  #host(around: Surroundings, whole: boolean): CallHost {
    return {
      view: () => this.#views.next(around.coordinator, around, whole),
      apply: (effects) => {
        for (const effect of effects) this.#apply(effect, around.coordinator);
      },
      ask: (target, method, args, options) => this.#answer(around, target, method, args, options),
    };
  }

  #answer(
    around: Surroundings,
    target: string,
    method: string,
    args: readonly unknown[],
    options: AskedOptions,
  ): Promise<unknown> {
    if (target === "coordinator" && method === "mount") {
      return this.#mountFor(around.coordinator, String(args[0]), isObject(args[1]) ? args[1] : {});
    }
    if (target === "function") {
      const fn = this.#functions.get(method);
      if (!fn) return Promise.reject(new TypeError(`Cannot call function "${method}": there is none`));
      return Promise.resolve(fn());
    }
    return answer(around, target, method, args, options);
  }

  /** The guest mounts something: a stand-in is mounted for it. Resolves to the name it is mounted under. */
  async #mountFor(coordinator: Coordinator, point: string, given: JsonObject): Promise<string | null> {
    const name = typeof given.name === "string" ? given.name : undefined;
    const shape = readShape(given.shape);
    if (!shape) {
      await coordinator.mount(point, given.value as object, name); // says what is wrong with it
      return null;
    }
    checkShape(shape);
    const slot = slotOf(point, name);
    const key = slot?.many ? name ?? String(shape.data.name ?? "") : slot?.point ?? point;
    checkName(key);
    const place = `mount/${slot?.point ?? point}/${key}`;
    const known = this.#done.has(place);
    const standIn = this.#standIn(slot?.point ?? point, place, given.ref, shape);
    if (this.#again && known) return key;
    this.#done.set(place, {});
    await coordinator.mount(point, standIn, name);
    return key;
  }

  #standIn(point: string, key: string, ref: unknown, shape: Shape): object {
    const { bounds, warn, name } = this.#options;
    const call = this.#bind(key, ref);
    this.#data.set(key, shape.data);
    switch (point) {
      case "tools":
        return toolStandIn(shape, call, bounds);
      case "providers":
        return providerStandIn(shape, () => this.#data.get(key) ?? {}, call);
      case "context":
        return contextStandIn(shape, call, bounds, {
          pass: (fn) => this.#pass(fn),
          nameOf: (provider) => this.#providerName(provider),
          warn: (error) => warn("system_prompt_lost", `Module "${name}": ${errorMessage(error)}`),
        });
      case "orchestrator":
        return orchestratorStandIn(shape, call, () => this.#coordinator!);
      default:
        return objectStandIn(shape, call, bounds);
    }
  }

  #pass(fn: () => unknown): string {
    const name = String(this.#functions.size + 1);
    this.#functions.set(name, fn);
    return name;
  }

  #providerName(provider: Provider): string | undefined {
    const entries = Object.entries(this.#coordinator!.providers);
    return (entries.find(([, one]) => one === provider) ??
      entries.find(([, one]) => one.name === provider.name))
      ?.[0];
  }

  #apply(effect: Effect, coordinator: Coordinator): void {
    const { bounds } = this.#options;
    switch (effect.e) {
      case "register":
        return this.#register(effect, coordinator);
      case "dispose":
        return this.#dispose(effect.ref);
      case "unregister":
        return coordinator.hooks.unregister(String(effect.name));
      case "default_fields":
        return coordinator.hooks.setDefaultFields(isObject(effect.fields) ? effect.fields : {});
      case "cleanup": {
        const key = this.#numbered("cleanup");
        const cleanup = functionStandIn(this.#bind(key, effect.ref), bounds);
        return this.#once(key, () => coordinator.registerCleanup(() => cleanup()));
      }
      case "capability":
        return this.#publish(effect, coordinator);
      case "contributor": {
        const key = `contributor/${effect.channel}/${effect.name}`;
        const callback = functionStandIn(this.#bind(key, effect.ref), bounds);
        const register = () =>
          coordinator.registerContributor(String(effect.channel), String(effect.name), () => callback());
        return this.#once(key, register);
      }
      case "state":
      case "deleted":
        return this.#setState(effect, coordinator);
      case "cancel":
        return coordinator.requestCancel(effect.immediate === true);
      case "reset_turn":
        return coordinator.resetTurn();
      case "system_prompt": {
        const { ref } = effect;
        const factory = ref === null ? null : functionStandIn(this.#bind("system_prompt", ref), bounds);
        coordinator.context?.setSystemPromptFactory?.(factory && (async () => String(await factory())));
        return;
      }
      default:
        throw new TypeError("an unknown effect");
    }
  }

  #register({ ref, event, options }: Extract<Effect, { e: "register" }>, coordinator: Coordinator): void {
    if (typeof event !== "string" || event === "" || !isObject(options)) {
      throw new TypeError("a handler of nothing");
    }
    const key = this.#numbered(`handler/${event}`);
    // everybody waits for a handler: a stranger may ask for less than the policy's time, not for more, nor for none (0)
    const most_ms = this.#options.bounds.deadline_ms;
    const asked_ms = typeof options.timeout_ms === "number" ? options.timeout_ms : 0;
    const timeout_ms = asked_ms > 0 ? Math.min(asked_ms, most_ms) : most_ms;
    const handler = handlerStandIn(event, this.#bind(key, ref), timeout_ms);
    if (this.#again && this.#done.has(key)) return;
    const { priority, name, fail_closed } = options;
    const dispose = coordinator.hooks.register(event, handler, {
      timeout_ms,
      ...(typeof priority === "number" ? { priority } : {}),
      ...(typeof name === "string" ? { name: name.slice(0, MAX_NAME) } : {}),
      ...(typeof fail_closed === "boolean" ? { fail_closed } : {}),
    });
    this.#done.set(key, { dispose });
  }

  #dispose(ref: number): void {
    for (const [key, known] of this.#refs) {
      if (known !== ref) continue;
      this.#done.get(key)?.dispose?.();
      return;
    }
  }

  #publish({ name, value, refs }: Extract<Effect, { e: "capability" }>, coordinator: Coordinator): void {
    if (typeof name !== "string" || !isObject(refs)) throw new TypeError("a capability without a name");
    const call = (method: string) =>
      functionStandIn(this.#bind(`capability/${name}/${method}`, refs[method]), this.#options.bounds);
    const functions = Object.fromEntries(Object.keys(refs).map((method) => [method, call(method)]));
    const whole = functions[""] ?? (isObject(value) ? { ...value, ...functions } : value);
    // a guest that was started again publishes anew: what others hold of the old one still works
    if (!this.#again || whole !== functions[""]) coordinator.registerCapability(name, whole);
  }

  #setState(effect: Extract<Effect, { e: "state" | "deleted" }>, coordinator: Coordinator): void {
    const { session_state } = coordinator;
    try {
      if (effect.e === "deleted") delete session_state[String(effect.key)];
      else session_state[String(effect.key)] = effect.value;
    } catch (error) {
      const { warn, name } = this.#options;
      warn("session_state_lost", `Module "${name}": ${errorMessage(error)}`); // two modules at once may be too much
    }
  }

  /** Does it, unless it was done for the guest before this one. */
  #once(key: string, act: () => void): void {
    if (this.#again && this.#done.has(key)) return;
    this.#done.set(key, {});
    act();
  }

  /** Returns the same keys for the same acts in the same order. */
  #numbered(kind: string): string {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return `${kind}#${count}`;
  }
}

const EMPTY: Shape = { data: {}, methods: {} };

function slotOf(point: string, name: string | undefined): { point: string; many: boolean } | undefined {
  try {
    const { single, many } = resolvePoint(point, name);
    return single ? { point: single, many: false } : { point: many!, many: true };
  } catch {
    return undefined; // the coordinator says what is wrong with it
  }
}

function checkShape(shape: Shape): void {
  const bytes = JSON.stringify(shape).length;
  if (bytes <= MAX_SHAPE_BYTES) return;
  throw new RangeError(
    `Cannot mount it: description and schema may have ${MAX_SHAPE_BYTES} bytes: received ${bytes}`,
  );
}

/** Names are shown to people and models, and are keys. */
function checkName(name: string): void {
  // deno-lint-ignore no-control-regex -- control characters are what is refused
  if (name.length <= MAX_NAME && !/[\u0000-\u001f\u007f-\u009f]/.test(name)) return;
  throw new TypeError(
    `Cannot mount it: a name has at most ${MAX_NAME} characters and no control characters: received ${
      JSON.stringify(name.slice(0, 40))
    }`,
  );
}
