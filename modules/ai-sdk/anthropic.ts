/** Anthropic's models through `@ai-sdk/anthropic`. */
import type { AnthropicLanguageModelOptions } from "@ai-sdk/anthropic";
// the main entry reads variables of the process when it is imported
import { AnthropicLanguageModel } from "@ai-sdk/anthropic/internal";
import { isObject, type JsonObject } from "preamp/base";
import type {
  AnswerBlocks,
  Backend,
  CallSettings,
  Conversation,
  Degradations,
  ListedModel,
  ProviderSettings,
} from "preamp/provider";
import { traitsOf } from "./anthropic_traits.ts";
import { aiSdkBackend } from "./adapter.ts";
import type { AnswerFacts, ChunkFacts, Vendor } from "./vendor.ts";
import { AnthropicReader } from "./wire/anthropic_reader.ts";

const VENDOR_URL = "https://api.anthropic.com";
/** Least tokens of a thinking budget. */
const MIN_BUDGET = 1024;
/** Type of the block that keeps the container of an answer for the next request. */
const CONTAINER = "anthropic_container";

type Effort = NonNullable<AnthropicLanguageModelOptions["effort"]>;
type Thinking = AnthropicLanguageModelOptions["thinking"];

/** Returns the thinking of a call: the package maps an effort, but not the default of a model. */
function thinkingOf(call: CallSettings, degradations: Degradations): Thinking {
  const { model, thinking_budget: budget, reasoning_effort: effort, max_output_tokens } = call;
  const { thinking, thinking_off, thinks_by_default } = traitsOf(model);
  if (thinking === "none") return undefined;
  if (budget === 0 || effort === "none") return thinking_off && { type: thinking_off };
  const is_requested = budget !== undefined || effort !== undefined;
  if (thinking === "adaptive" || thinking === "both" && budget === undefined) {
    if (!is_requested && thinks_by_default && thinking_off === "disabled" && isForced(call)) {
      return { type: "disabled" }; // the API refuses both together
    }
    // newer models leave the text out by default
    return is_requested || thinks_by_default ? { type: "adaptive", display: "summarized" } : undefined;
  }
  if (budget === undefined || max_output_tokens <= MIN_BUDGET) return undefined;
  if (mayBudget(call.conversation)) {
    return { type: "enabled", budgetTokens: Math.max(MIN_BUDGET, Math.min(budget, max_output_tokens - 1)) };
  }
  degradations.add(`thinking_budget ${budget}`, "the turn began without thinking");
  return undefined;
}

/** Returns whether a call must answer with a tool call. */
function isForced({ tools, tool_choice: choice }: CallSettings): boolean {
  const type = isObject(choice) ? choice.type : choice;
  return tools.length > 0 && choice !== undefined && type !== "auto" && type !== "none";
}

/**
 * Returns whether the API accepts a budget: calls of the current turn must begin with the thinking before
 * them. Those of another provider have none.
 */
function mayBudget({ turns }: Conversation): boolean {
  const question = turns.findLastIndex(({ role, parts }) =>
    role === "user" && parts.every(({ type }) => type !== "tool_result")
  );
  const answer = turns[question + 1];
  const [first] = answer?.parts ?? [];
  return answer?.role !== "assistant" ||
    first?.type === "native" && /thinking$/.test(String(first.block.type));
}

/**
 * Returns what the API would enforce in another sense: it closes every object, so that one with any names
 * would always be empty, and one of several schemas would fit none.
 */
function problemIn(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined;
  const { type, properties, additionalProperties, items, allOf, anyOf, oneOf, $defs } = schema;
  const names = Object.keys(isObject(properties) ? properties : {});
  if (allOf !== undefined || (anyOf ?? oneOf) !== undefined && names.length > 0) {
    return "several schemas of one object";
  }
  const is_open = isObject(additionalProperties) || schema.patternProperties !== undefined ||
    names.length === 0 && additionalProperties !== false;
  if (type === "object" && is_open) return "objects with properties of any name";
  const inner = [properties, $defs].flatMap((schemas) => isObject(schemas) ? Object.values(schemas) : []);
  return [items, anyOf ?? oneOf, ...inner].flat().map(problemIn).find((problem) => problem !== undefined);
}

/** Returns why the API cannot enforce the format of a call; undefined where it can. */
function formatProblem({ model, response_format: format }: CallSettings): string | undefined {
  if (format?.type === "json") return "the API has no JSON mode without a schema";
  if (format?.type !== "json_schema") return undefined;
  if (!traitsOf(model).structured_outputs) return `${model} has no structured outputs`;
  const problem = problemIn(format.schema);
  return problem && `the API cannot enforce ${problem}`;
}

function options(call: CallSettings, degradations: Degradations) {
  const { tool_choice: choice, response_format, max_output_tokens, model, temperature } = call;
  const { reasoning_effort: effort } = call;
  const { effort: has_effort } = traitsOf(model);
  const thinking = thinkingOf(call, degradations);
  const budget = thinking?.type === "enabled" ? thinking.budgetTokens ?? 0 : 0;
  // the API refuses a forced call beside thinking, also of models that always think
  const thinks = thinking ? thinking.type !== "disabled" : traitsOf(model).thinking_off !== "disabled";
  const is_refused = isForced(call) && thinks;
  if (is_refused) {
    const requested = isObject(choice) ? JSON.stringify(choice) : choice;
    degradations.add(
      `tool_choice ${requested}`,
      `${model} cannot be forced to a call while it thinks`,
      "auto",
    );
  }
  const problem = formatProblem(call);
  if (problem !== undefined) {
    degradations.add(`response_format ${response_format!.type}`, problem, "response_format text");
  }
  const container = call.conversation.turns.at(-2)?.parts.find((part) =>
    part.type === "native" && part.block.type === CONTAINER
  );
  const anthropic: AnthropicLanguageModelOptions = {
    structuredOutputMode: "outputFormat",
    toolStreaming: false,
    ...(effort === undefined || effort === "none" || !has_effort
      ? {}
      : { effort: (effort === "minimal" ? "low" : effort) as Effort }),
    ...(isObject(choice) && choice.disable_parallel_tool_use === true
      ? { disableParallelToolUse: true }
      : {}),
    ...(thinking ? { thinking } : {}),
    ...(container?.type === "native" ? { container: { id: String(container.block.id) } } : {}),
  };
  return {
    reasoning: "provider-default" as const, // the package would add a budget to the maximum
    maxOutputTokens: max_output_tokens - budget, // the package adds the budget
    ...(temperature === undefined ? {} : { temperature: Math.min(temperature, 1) }),
    ...(is_refused ? { toolChoice: { type: "auto" as const } } : {}),
    ...(problem === undefined ? {} : { responseFormat: { type: "text" as const } }),
    providerOptions: { anthropic: anthropic as never },
  };
}

/** The first event of a stream has the tokens of the request. */
function readChunk({ type, message }: JsonObject): ChunkFacts {
  const usage = type === "message_start" && isObject(message) ? message.usage : undefined;
  if (!isObject(usage)) return {};
  const count = (name: string) => Number(usage[name] ?? 0);
  return {
    usage: {
      input_tokens: count("input_tokens") + count("cache_read_input_tokens") +
        count("cache_creation_input_tokens"),
      output_tokens: count("output_tokens"),
      cache_read_tokens: count("cache_read_input_tokens"),
      cache_write_tokens: count("cache_creation_input_tokens"),
    },
  };
}

/**
 * Where the API executes code for its own tools, it wants the container back with the results of the calls.
 */
function finish(blocks: AnswerBlocks, { metadata: { container } }: AnswerFacts): void {
  if (isObject(container) && blocks.calls().length > 0) {
    blocks.add(CONTAINER, CONTAINER, { id: container.id });
  }
}

function listed({ id, display_name, max_input_tokens, max_tokens }: JsonObject): ListedModel | undefined {
  if (typeof id !== "string") return undefined;
  return {
    id,
    display_name: String(display_name ?? id),
    ...(max_input_tokens ? { context_window: Number(max_input_tokens) } : {}),
    ...(max_tokens ? { max_output_tokens: Number(max_tokens) } : {}),
  };
}

/** Returns the backend. */
export function createBackend({ base_url = VENDOR_URL, api_key }: ProviderSettings): Backend {
  const baseURL = `${base_url.replace(/\/v1$/, "")}/v1`;
  const headers = {
    "anthropic-version": "2023-06-01",
    ...(api_key === undefined ? {} : { "x-api-key": api_key }),
  };
  const vendor: Vendor = {
    key: "anthropic",
    media: /^image\/(jpeg|png|gif|webp)$|^application\/pdf$/,
    urls: /^image\/|^application\/pdf$/,
    takes_ids: true,
    property_names: /^[a-zA-Z0-9_.-]{1,64}$/,
    breakpoint: () => ({ cacheControl: { type: "ephemeral" } }),
    model: (id, { fetch }) =>
      new AnthropicLanguageModel(id, { provider: "anthropic.messages", baseURL, headers, fetch }),
    options,
    json_mode: false,
    facts: { stopDetails: "stop_details" },
    reader: () => new AnthropicReader(),
    readChunk,
    finish,
    optionsToContinue: ({ container }) => isObject(container) ? { container: { id: container.id } } : {},
    models: () => ({ url: `${baseURL}/models?limit=1000`, headers }),
    listed,
  };
  return aiSdkBackend(vendor);
}
