/** `tool-task`: gives a task to a sub-agent and returns its answer. */
import {
  type Coordinator,
  defineTool,
  errorCode,
  errorMessage,
  isObject,
  type JsonObject,
  type JsonSchema,
  type Message,
  type ModuleInfo,
  type MountReturn,
  type ProviderPreference,
  readConfig,
  type SpawnRequest,
  type SpawnResult,
  type SpawnSession,
  textOf,
  type Tool,
  type ToolCallContext,
} from "preamp/base";

/** Parts of the conversation that an agent can inherit. */
const CONTEXTS = ["none", "recent", "all"] as const;

/** Maximum number of turns for `recent`. */
const MAX_TURNS = 100;

/** Names of the tool. Amplifier's texts speak of `delegate`, and of `context_depth`. */
const NAMES = ["task", "delegate"] as const;

/** A checked config with all defaults. */
interface TaskConfig {
  tool_name: (typeof NAMES)[number];
  inherit_context: (typeof CONTEXTS)[number];
  inherit_context_turns: number;
  exclude_tools?: string[];
  inherit_tools?: string[];
}

interface TaskInput extends Partial<Pick<TaskConfig, "inherit_context" | "inherit_context_turns">> {
  /** The names of a tool that is called `delegate`. */
  context_depth?: TaskConfig["inherit_context"];
  context_turns?: number;
  instruction: string;
  agent?: string;
  session_id?: string;
  provider_preferences?: ProviderPreference[];
}

export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    tool_name: {
      enum: [...NAMES],
      default: "task",
      description: "Name of the tool; delegate has context_depth and context_turns for inherit_context",
    },
    inherit_context: {
      enum: [...CONTEXTS],
      default: "none",
      description: "The part of the conversation that an agent inherits by default.",
    },
    inherit_context_turns: { type: "integer", minimum: 1, maximum: MAX_TURNS, default: 5 },
    exclude_tools: {
      type: "array",
      items: { type: "string" },
      description: "Ids of tool modules that agents do not inherit; an agent's own tools stay.",
    },
    inherit_tools: {
      type: "array",
      items: { type: "string" },
      description: "Ids of the only tool modules that agents inherit. Cannot be combined with exclude_tools.",
    },
  },
};

/** Returns the config with its defaults. @throws {PreampError} `module_invalid` with all problems. */
function readTaskConfig(config: JsonObject): TaskConfig {
  return readConfig<TaskConfig>(CONFIG_SCHEMA, config, ({ exclude_tools, inherit_tools }, refuse) => {
    if (exclude_tools && inherit_tools) refuse(["inherit_tools"], "cannot be combined with exclude_tools");
  });
}

/** Maximum characters of an agent's description in the tool's description. */
const MAX_DESCRIPTION = 300;

/** Returns the names and descriptions of a plan's agents, one on each line. */
function describeAgents(plan: JsonObject): string {
  const lines = Object.entries(agentsOf(plan)).map(([name, overlay]) => {
    const { description } = isObject(overlay) ? overlay : {};
    const is_described = typeof description === "string" && description !== "";
    return is_described ? `- ${name}: ${description.slice(0, MAX_DESCRIPTION)}` : `- ${name}`;
  });
  return [...lines, "- self: the same agent as you, with an empty conversation (the default)"].join("\n");
}

function agentsOf({ agents }: JsonObject): JsonObject {
  return isObject(agents) ? agents : {};
}

/** Returns the schema of the tool's input for a plan. */
export function inputSchema(plan: JsonObject, tool_name: TaskConfig["tool_name"] = "task"): JsonSchema {
  const names = [...Object.keys(agentsOf(plan)), "self"];
  const [context, turns] = tool_name === "task"
    ? ["inherit_context", "inherit_context_turns"]
    : ["context_depth", "context_turns"];
  return {
    type: "object",
    properties: {
      instruction: {
        type: "string",
        minLength: 1,
        description: "The complete task: the agent knows nothing else unless it inherits context",
      },
      agent: { type: "string", enum: names, description: "Name of the agent; default: self" },
      session_id: {
        type: "string",
        description:
          "Instead of agent: continues an agent that you spawned before, by the session_id of its result",
      },
      [context]: {
        type: "string",
        enum: [...CONTEXTS],
        description:
          "The part of this conversation that the agent gets: none, the recent turns, or all of it",
      },
      [turns]: {
        type: "integer",
        minimum: 1,
        maximum: MAX_TURNS,
        description: "Number of turns for recent",
      },
      provider_preferences: {
        type: "array",
        description: "Providers for the agent, best first; the first available one is used",
        items: {
          type: "object",
          properties: {
            provider: { type: "string", description: "Name of a provider" },
            model: { type: "string", description: "Name of a model; * matches any characters" },
          },
          required: ["provider"],
          additionalProperties: false,
        },
      },
    },
    required: ["instruction"],
  };
}

export const module: ModuleInfo = {
  id: "tool-task",
  type: "tool",
  version: "1.0.0",
  description: "Gives a task to a sub-agent of the plan and returns its answer.",
  config_schema: CONFIG_SCHEMA,
};

/** Events that the runtime emits in the session that spawns a sub-agent. */
const EVENTS = ["task:agent_spawned", "task:agent_resumed", "task:agent_completed"];

/**
 * Mounts the tool `task`, which uses the capability `session.spawn`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const tool = taskTool(coordinator, readTaskConfig(config));
  await coordinator.mount("tools", tool, tool.name);
  coordinator.registerContributor("observability.events", module.id, () => EVENTS);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

function taskTool(coordinator: Coordinator, config: TaskConfig): Tool {
  const { tool_name } = config;
  const context = tool_name === "task" ? "inherit_context" : "context_depth";
  return defineTool({
    name: tool_name,
    description:
      "Give a task to an agent that works on its own and answers once. It does not see this conversation " +
      `unless you set ${context}. Several tasks in one answer run in parallel. Agents:\n${
        describeAgents(coordinator.config)
      }`,
    input: inputSchema(coordinator.config, tool_name),
    async execute(input, call) {
      const task = input as TaskInput; // checked by the schema
      if (task.agent !== undefined && task.session_id !== undefined) {
        return failure("tool_input_invalid", "Cannot start the task: give agent or session_id, not both");
      }
      const spawn = coordinator.getCapability("session.spawn");
      if (typeof spawn !== "function") {
        return failure("internal", "Cannot start the task: this session cannot spawn agents");
      }
      try {
        const result = await (spawn as SpawnSession)(await requestOf(task, config, coordinator, call)); // the runtime's
        if (call?.signal.aborted) throw call.signal.reason;
        return toResult(result);
      } catch (error) {
        if (call?.signal.aborted) throw error; // cancelled or timed out: the loop reports it
        return failure(errorCode(error) ?? "internal", errorMessage(error));
      }
    },
  });
}

async function requestOf(
  { instruction, agent, session_id, provider_preferences, context_depth, context_turns, ...input }: TaskInput,
  { exclude_tools, inherit_tools, ...config }: TaskConfig,
  coordinator: Coordinator,
  call: ToolCallContext | undefined,
): Promise<SpawnRequest> {
  const inherit_context = input.inherit_context ?? context_depth ?? config.inherit_context;
  const turns = input.inherit_context_turns ?? context_turns ?? config.inherit_context_turns;
  const history = inherit_context === "none" ? [] : await coordinator.context?.getMessages() ?? [];
  const inherited = inherit_context === "all" ? history : recent(history, turns);
  return {
    instruction: promptOf(instruction, inherited),
    ...(agent === undefined ? {} : { agent }),
    ...(session_id === undefined ? {} : { session_id }),
    ...(call === undefined ? {} : { tool_call_id: call.id }),
    ...(provider_preferences ? { provider_preferences } : {}),
    ...(exclude_tools ? { exclude_tools } : {}),
    ...(inherit_tools ? { inherit_tools } : {}),
  };
}

/**
 * Returns the tool's result. That of an incomplete agent fails, with its text and session id, so that the
 * model can continue it.
 */
function toResult({ output, session_id, status, turn_count, metadata }: SpawnResult): JsonObject {
  const answer = { response: output, session_id, agent: metadata.agent, status, turn_count };
  if (status === "completed") return { success: true, output: answer };
  const { error, stop_reason } = metadata;
  const message = isObject(error) ? String(error.message) : `The agent stopped: ${stop_reason}`;
  return {
    success: false,
    output: { ...answer, stop_reason, error: message },
    error: { type: status, message, session_id },
  };
}

function failure(type: string, message: string): JsonObject {
  return { success: false, error: { type, message } };
}

/**
 * Returns the prompt of an agent: inherited messages of people and the model, without calls and results, then
 * its instruction.
 */
function promptOf(instruction: string, inherited: readonly Message[]): string {
  const texts = textsOf(inherited);
  if (texts.length === 0) return instruction;
  return `The conversation so far:\n\n${texts.join("\n\n")}\n\nYour task:\n${instruction}`;
}

/** Returns the last turns; each begins with a message that a person wrote. */
function recent(history: readonly Message[], turns: number): readonly Message[] {
  let left = turns;
  for (let index = history.length - 1; index >= 0; index--) {
    if (isFromPerson(history[index]!) && --left === 0) return history.slice(index);
  }
  return history;
}

/** Returns whether a person wrote a message; hooks and loops also add user messages. */
function isFromPerson({ role, metadata }: Message): boolean {
  const source = metadata?.source;
  return role === "user" && source !== "hook" && source !== "orchestrator";
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    const speaker = isFromPerson(message) ? "User" : message.role === "assistant" ? "Assistant" : null;
    const text = speaker === null ? "" : textOf(message.content).trim();
    return text === "" ? [] : [`${speaker}: ${text}`];
  });
}
