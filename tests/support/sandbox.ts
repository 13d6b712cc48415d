/**
 * For tests of sandboxes: a sandbox that ends what it started, modules as bundles, and modules that are
 * written in place.
 */
import type { Module, ModuleType, ToolCallContext, ToolResult } from "../../src/sdk/types.ts";
import type { GuestGrant } from "../../src/sandbox/guest_worker.ts";
import type { GuestLimits } from "../../src/sandbox/protocol.ts";
import { type GuestSlots, Sandbox } from "../../src/sandbox/sandbox.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { TestCoordinator, type TestCoordinatorOptions } from "../../src/testing/coordinator.ts";
import { createLoader, type Loader } from "../../src/loader/loader.ts";
import { contextOf, specOf } from "./loader.ts";

/** Limits that no test comes near unless it means to. */
export const ROOMY: GuestLimits = {
  memory_mb: 512,
  cpu_s: 60,
  load_timeout_s: 60,
  max_tool_output_bytes: 256 * 1024,
  max_tool_image_bytes: 10 * 1024 * 1024,
  max_answer_tool_calls: 128,
  max_answer_blocks: 2_000,
  call_timeout_s: 60,
};

/** Code of a module, and which parts of the SDK it reads. */
export interface Code {
  readonly code: string;
  readonly uses: readonly string[];
}

/** A line of the process's log. */
export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly facts: Record<string, unknown>;
}

/** A warning of a run. */
export interface Warning {
  readonly code: string;
  readonly message: string;
}

/** How a module is opened. */
export interface OpenOptions {
  readonly type?: ModuleType;
  readonly name?: string;
  readonly grant?: Readonly<Partial<GuestGrant>>;
  readonly limits?: Partial<GuestLimits>;
}

/** A sandbox, and everything that runs in it: ended with the scope. */
export class Lab implements AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly log: LogLine[] = [];
  readonly warnings: Warning[] = [];
  /** Lines of the consoles of guests, with their levels. */
  readonly console: string[] = [];
  readonly #hearing = Promise.withResolvers<void>();
  readonly #session: GuestSlots;
  readonly #close: (() => Promise<void>)[] = [];
  #loader: Loader | undefined;

  constructor({ max_guests = 64, max_guests_per_session = 64 } = {}) {
    this.sandbox = new Sandbox({
      max_guests,
      usual: ROOMY,
      log: (level, event, facts) => void this.log.push({ level, event, facts }),
    });
    this.#session = this.sandbox.session(max_guests_per_session);
  }

  /** Opens a module in a process; text is its code. */
  async open(code: Code | string, options: OpenOptions = {}): Promise<Module> {
    const { type = "tool", name = "guest", grant = {}, limits = {} } = options;
    const given = typeof code === "string" ? { code, uses: [] } : code;
    const { module, close } = await this.sandbox.open({
      module: name,
      type,
      code: given.code,
      uses: given.uses,
      grant,
      limits: { ...ROOMY, ...limits },
      session: this.#session,
      onLog: (level, text) => {
        this.console.push(`${level}: ${text}`);
        this.#hearing.resolve();
      },
      warn: (code, message) => void this.warnings.push({ code, message }),
    });
    this.#close.push(close);
    return module;
  }

  /**
   * Bundles a file, a URL or a path from the root of this repository, as a plan that names it would have it
   * bundled.
   */
  async bundle(path: string): Promise<Code> {
    this.#loader ??= createLoader({ cache_dir: null });
    const url = new URL(path, new URL("../../", import.meta.url)).href;
    const { code, uses } = await this.#loader.prepare(specOf(url), contextOf());
    return { code, uses };
  }

  /** Resolves when a guest has written to its console. */
  async heard(): Promise<void> {
    await this.#hearing.promise;
  }

  /** Ends the guests that run now. */
  async end(): Promise<void> {
    await Promise.all(this.#close.splice(0).map((close) => close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    await this.#loader?.close();
    await this.sandbox.close();
  }
}

/** A module that is mounted on a coordinator of its own, or on a given one. */
export async function mounted(
  lab: Lab,
  code: string,
  options: OpenOptions & { on?: TestCoordinator; config?: JsonObject; coordinator?: TestCoordinatorOptions } =
    {},
) {
  const module = await lab.open(code, options);
  const coordinator = options.on ?? new TestCoordinator(options.coordinator);
  const returned: unknown = await module.mount(coordinator, options.config ?? {});
  const call = async (name: string, input: JsonObject = {}, context?: Partial<ToolCallContext>) => {
    const { signal } = new AbortController();
    const given = { id: "c1", session_id: "s", signal, progress: () => {}, ...context };
    const result = await coordinator.tools[name]!.execute(input, given) as ToolResult;
    return result.output;
  };
  return { module, coordinator, returned, call };
}

/** A module with one tool `t` whose body is this. */
export const toolOf = (body: string): string =>
  `export const mount = (coordinator, config) => coordinator.mount("tools", { name: "t", description: "d",
     execute: async (input, call) => { ${body} } });`;
