/** Opens a tool in a sandbox and mounts it, without a session. */
import { Sandbox } from "../../../src/sandbox/sandbox.ts";
import type { GuestRequest } from "../../../src/sandbox/sandbox.ts";
import { TestCoordinator } from "../../../src/testing/coordinator.ts";
import type { JsonObject, Tool, ToolResult } from "../../../src/sdk/types.ts";

/** Maximum bytes of an answer: the largest of the benches, and room for the frame. */
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Limits of a guest: those of a server, except for the size of answers. */
const LIMITS: GuestRequest["limits"] = {
  memory_mb: 256,
  cpu_s: 30,
  load_timeout_s: 60,
  max_tool_output_bytes: MAX_OUTPUT_BYTES,
  max_tool_image_bytes: 0,
  max_answer_tool_calls: 128,
  max_answer_blocks: 2_000,
  call_timeout_s: 60,
};

/** Code of a tool that returns its text, or `size` characters. */
const CODE = `
let sized = "";
export async function mount(coordinator) {
  await coordinator.mount("tools", {
    name: "echo",
    description: "Echoes",
    input_schema: { type: "object", properties: { text: { type: "string" }, size: { type: "number" } } },
    async execute({ text, size = 0 }) {
      if (sized.length !== size) sized = "x".repeat(size);
      return { success: true, output: size > 0 ? sized : text };
    },
  }, "echo");
}`;

/** Code of the same tool with `defineTool` and zod. */
const KIT_CODE = `
const sdk = globalThis[Symbol.for("preamp.sdk")];
const { defineTool } = sdk["preamp"];
const { z } = sdk["zod"];
export async function mount(coordinator) {
  await coordinator.mount("tools", defineTool({
    name: "echo",
    description: "Echoes",
    input: z.object({ text: z.string() }),
    execute: ({ text }) => ({ success: true, output: text }),
  }), "echo");
}`;

/** Options of a guest. */
export interface GuestKind {
  /** Whether it has a permission. Default: false. */
  readonly granted?: boolean;
  /** Whether it uses `preamp` and zod, which are then loaded. */
  readonly kit?: boolean;
}

/** A mounted tool. */
export interface GuestTool extends AsyncDisposable {
  /** Calls the tool and resolves to its output. @throws {Error} when it fails. */
  call(input: JsonObject): Promise<unknown>;
}

/** Returns a sandbox. Without a pool, each guest starts cold: spare children have other limits. */
export function openSandbox(pool: "pool" | "no pool"): Sandbox {
  return new Sandbox({
    max_guests: 256,
    usual: pool === "pool" ? LIMITS : { ...LIMITS, memory_mb: LIMITS.memory_mb + 1 },
    log(level, event, facts) {
      if (level !== "info") {
        throw new Error(`Cannot measure: the sandbox logged ${event}: ${JSON.stringify(facts)}`);
      }
    },
  });
}

/** Opens a guest and mounts its tool. */
export async function openTool(sandbox: Sandbox, kind: GuestKind): Promise<GuestTool> {
  const { granted = false, kit = false } = kind;
  const { module, close } = await sandbox.open({
    module: "tool-echo",
    type: "tool",
    code: kit ? KIT_CODE : CODE,
    uses: kit ? ["preamp", "zod"] : [],
    grant: granted ? { net: ["tools.example:443"] } : {},
    limits: LIMITS,
    session: sandbox.session(256),
    onLog() {},
    warn(code, message) {
      throw new Error(`Cannot measure: the sandbox warned: ${code}: ${message}`);
    },
  });
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const tool: Tool | undefined = coordinator.tools.echo;
  if (!tool) throw new Error("Cannot measure: the guest must mount its tool");
  const signal = new AbortController().signal; // like the kernel's signal for each call
  return {
    async call(input) {
      const result = await tool.execute(input, { id: "call_1", session_id: "ses_1", signal, progress() {} });
      const { success, output } = result as ToolResult;
      if (!success) {
        throw new Error(`Cannot measure: the tool must answer: received ${JSON.stringify(result)}`);
      }
      return output;
    },
    [Symbol.asyncDispose]: close,
  };
}
