/** `tool-task`: hands a task to a sub-agent and returns what it answers (behaviour.md §7.11, §9.8). */
import {
  type Coordinator,
  errorCode,
  errorMessage,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  type SpawnRequest,
  type SpawnResult,
  type SpawnSession,
  type Tool,
  type ToolCallContext,
} from "preamp";
import { CONFIG_SCHEMA, readConfig, type TaskConfig } from "./config.ts";
import { promptOf } from "./inherited_prompt.ts";
import { describeAgents, inputSchema, readInput, type TaskInput } from "./input.ts";

/** What this module is. */
export const module: ModuleInfo = {
  id: "tool-task",
  type: "tool",
  version: "1.0.0",
  description: "Hands a task to a sub-agent of the plan and returns its answer.",
  config_schema: CONFIG_SCHEMA,
};

/** Events of a sub-agent's life; the runtime emits them in the session that spawns it. */
const EVENTS = ["task:agent_spawned", "task:agent_resumed", "task:agent_completed"];

/** Mounts the tool `task`; it needs the capability `session.spawn`. @throws {PreampError} `module_invalid` for a wrong config. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const tool = taskTool(coordinator, readConfig(config));
  await coordinator.mount("tools", tool, tool.name);
  coordinator.registerContributor("observability.events", module.id, () => EVENTS);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

function taskTool(coordinator: Coordinator, config: TaskConfig): Tool {
  return {
    name: "task",
    description:
      "Hand a task to an agent that works on its own and answers once. It does not see this conversation " +
      `unless inherit_context says so. Several tasks in one answer run side by side. Agents:\n${
        describeAgents(coordinator.config)
      }`,
    input_schema: inputSchema(coordinator.config),
    async execute(input, call) {
      const task = readInput(input, config);
      if (typeof task === "string") return failure("tool_input_invalid", `Cannot start the task: ${task}`);
      const spawn = coordinator.getCapability("session.spawn");
      if (typeof spawn !== "function") {
        return failure("internal", "Cannot start the task: nothing here can spawn an agent");
      }
      try {
        const request = await requestOf(task, config, coordinator, call);
        const result = await (spawn as SpawnSession)(request); // what the runtime publishes under this name
        if (call?.signal.aborted) throw call.signal.reason;
        return toResult(result);
      } catch (error) {
        if (call?.signal.aborted) throw error; // cancelled or too late: the loop tells it
        return failure(errorCode(error) ?? "internal", errorMessage(error));
      }
    },
  };
}

async function requestOf(
  task: TaskInput,
  { exclude_tools, inherit_tools }: TaskConfig,
  coordinator: Coordinator,
  call: ToolCallContext | undefined,
): Promise<SpawnRequest> {
  const { agent, session_id, provider_preferences } = task;
  const history = task.inherit_context === "none" ? [] : await coordinator.context?.getMessages() ?? [];
  return {
    instruction: promptOf(task, history),
    ...(agent === undefined ? {} : { agent }),
    ...(session_id === undefined ? {} : { session_id }),
    ...(call === undefined ? {} : { tool_call_id: call.id }),
    ...(provider_preferences ? { provider_preferences } : {}),
    ...(exclude_tools ? { exclude_tools } : {}),
    ...(inherit_tools ? { inherit_tools } : {}),
  };
}

/** An agent that did not complete is a failure that tells what there is: the model may ask it again by its session. */
function toResult({ output, session_id, status, turn_count, metadata }: SpawnResult): JsonObject {
  const told = { response: output, session_id, agent: metadata.agent, status, turn_count };
  if (status === "completed") return { success: true, output: told };
  const { error, stop_reason } = metadata;
  const message = typeof error === "object" && error !== null
    ? String((error as JsonObject).message)
    : `The agent stopped: ${stop_reason}`;
  return {
    success: false,
    output: { ...told, stop_reason, error: message },
    error: { type: status, message, session_id },
  };
}

function failure(type: string, message: string): JsonObject {
  return { success: false, error: { type, message } };
}
