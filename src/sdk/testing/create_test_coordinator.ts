/** Creates a coordinator with two tools and a context. */
import { ToolResult } from "../tools.ts";
import { TestCoordinator, type TestCoordinatorOptions } from "./coordinator.ts";
import { MockContextManager } from "./mock_context.ts";
import { MockTool } from "./mock_tool.ts";

/** Returns a coordinator with the tools `echo` and `fail` and a {@link MockContextManager}. */
export function createTestCoordinator(options: TestCoordinatorOptions = {}): TestCoordinator {
  const coordinator = new TestCoordinator(options);
  const echo = new MockTool({
    name: "echo",
    description: "Returns its input.",
    execute: (input) => ToolResult({ output: input }),
  });
  const fail = new MockTool({
    name: "fail",
    description: "Fails, always.",
    return_value: ToolResult({ success: false, error: { message: "Always fails" } }),
  });
  for (const tool of [echo, fail]) coordinator.tools[tool.name] = tool;
  for (const tool of [echo, fail]) {
    coordinator.mount_history.push({ mount_point: "tools", module: tool, name: tool.name });
  }
  coordinator.mount("context", new MockContextManager());
  return coordinator;
}
