/** Plans whose agents read and write the files of a folder, each by a script. */
import type { JsonObject } from "../../src/sdk/types.ts";

function call(name: string, input: JsonObject): JsonObject {
  return { tool_calls: [{ name, arguments: input }] };
}

/** Returns a script entry that reads a file. */
export const read = (path: string): JsonObject => call("read", { path });
/** Returns a script entry that writes a file. */
export const write = (path: string, content: string): JsonObject => call("write", { path, content });
/** Returns a script entry that gives a task to a sub-agent. */
export const task = (agent: string): JsonObject => call("task", { agent, instruction: "Do it." });

type Script = (JsonObject | string)[];

/**
 * Returns a plan with the tools of files. `agents`: sub-agents by name, with their scripts. `tool`: the
 * module of the tools.
 */
export function filesPlan(
  folder: string,
  script: Script,
  agents: Record<string, Script> = {},
  tool: JsonObject = { module: "tool-filesystem" },
): JsonObject {
  const providers = (responses: Script) => [{ module: "provider-mock", config: { responses } }];
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: providers(script),
    tools: [{ ...tool, permissions: { read: [folder], write: [folder] } }, "tool-task"],
    agents: Object.fromEntries(
      Object.entries(agents).map(([name, responses]) => [name, {
        description: name,
        providers: providers(responses),
      }]),
    ),
  };
}
