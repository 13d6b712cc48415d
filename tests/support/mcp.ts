/** Servers of `tool-mcp`, mounted in a test session. */
import type { JsonObject } from "preamp";
import { FakeApproval, TestCoordinator } from "preamp/testing";
import * as mcp from "../../modules/tool-mcp/mod.ts";
import { assertEquals } from "../assert.ts";

/** Calls a mounted tool; resolves to the text of its result, after `!` when it is a failure. */
export type Call = (tool: string, input?: JsonObject, options?: { signal?: AbortSignal }) => Promise<string>;

/** Calls `use` with the tools of servers, and what they reported as progress. */
export async function withServers(
  config: JsonObject,
  use: (call: Call, coordinator: TestCoordinator, progress: string[]) => Promise<void>,
  permissions: JsonObject = { run: [Deno.execPath()] },
  approval = new FakeApproval(),
): Promise<void> {
  const coordinator = new TestCoordinator({ permissions, approval });
  const progress: string[] = [];
  try {
    await mcp.mount(coordinator, config);
    const call: Call = async (name, input = {}, { signal = new AbortController().signal } = {}) => {
      const context = {
        id: "c",
        signal,
        session_id: "s",
        progress: (text: string) => void progress.push(text),
      };
      const result = await coordinator.tools[name]!.execute(input, context) as
        | string
        | { output: string | null; error: { message: string }; content?: unknown };
      if (typeof result === "object" && result.content) return result.content as string; // blocks
      return typeof result === "string" ? result : `!${result.output ?? result.error.message}`;
    };
    await use(call, coordinator, progress);
  } finally {
    const { failed } = await coordinator.cleanup();
    assertEquals(failed, []);
  }
}
