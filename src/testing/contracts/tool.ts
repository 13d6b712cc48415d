/** The tool contract as a test suite. */
import { deepFreeze, isObject, jsonEqual, type JsonObject, toPlain } from "../../sdk/json.ts";
import { textOf } from "../../sdk/messages.ts";
import { inputSchemaOf, methodOf } from "../../sdk/snake_case_aliases.ts";
import {
  type Tool,
  TOOL_NAME,
  type ToolCallContext,
  type ToolResult,
  toToolResult,
} from "../../sdk/tools.ts";
import { exampleInput, type ExampleInputOptions } from "../example_input.ts";
import {
  type Cases,
  type CreateSubject,
  expect,
  inSession,
  isCodeError,
  type Mounted,
  mountSubject,
  NotTriedError,
  registerCases,
  required,
  sessionOptions,
  type SuiteOptions,
  withSubject,
} from "./suite.ts";

/** Options of {@link testTool}. */
export interface ToolSuiteOptions extends SuiteOptions {
  /** Name of the tool when the module mounts several; default the first. */
  tool?: string;
  /**
   * An input that must succeed. Without it, an input is made from `input_schema`; the call must not crash.
   */
  input?: JsonObject;
}

/** The tool of a case. */
interface MountedTool {
  readonly tool: Tool;
  /**
   * Resolves to the given input, or to one made from the tool's schema.
   *
   * @throws {NotTriedError} without either.
   */
  inputOf(options?: ExampleInputOptions): Promise<JsonObject>;
  /** Checks that a model can call the tool, in a session with another instance of it. */
  callInSession(input: JsonObject): Promise<void>;
}

/**
 * Registers the cases that every tool must pass. `create` makes a new module or tool per case. The suite
 * calls the tool with inputs made from its schema, so a tool with effects needs a place where they do no
 * harm.
 */
export function testTool(name: string, create: CreateSubject<Tool>, options: ToolSuiteOptions = {}): void {
  const { tool: wanted, input } = options;
  const run = (check: (part: MountedTool) => Promise<void> | void) =>
    withSubject(create, "tools", options, ({ coordinator: { tools } }) => {
      const tool = wanted === undefined ? Object.values(tools)[0] : tools[wanted];
      expect(tool, "No tool was mounted and mount() did not return a Tool instance");
      const inputOf = async (example_options: ExampleInputOptions = {}) => {
        if (input && !example_options.full) return structuredClone(input);
        const example = await exampleInput(inputSchemaOf(tool), example_options);
        if ("input" in example) return example.input;
        throw new NotTriedError(`no input was made from input_schema: ${example.problem}`);
      };
      const callInSession = (input: JsonObject) => checkCalled(create, options, tool.name, input);
      return check({ tool, inputOf, callInSession });
    });
  const cases = input ? { ...CASES, "execute() succeeds with a good input": checkSuccess } : CASES;
  registerCases(name, options, cases, run);
  registerCases(name, options, { "cleanup works, once and twice": checkCleanup }, async (check) => {
    await check(await mountSubject(create, "tools", options));
  });
}

const CASES: Cases<MountedTool> = {
  "mount() mounts a tool"() {},
  "name is valid for models"({ tool: { name } }) {
    const fits = typeof name === "string" && TOOL_NAME.test(name);
    expect(fits, `name must be 1 to 64 letters, digits, _ or -: received ${JSON.stringify(name)}`);
  },
  "description is not empty"({ tool: { description } }) {
    const fits = typeof description === "string" && description.trim();
    expect(fits, "description must be a non-empty text");
  },
  "input_schema is a JSON Schema of an object": ({ tool }) => checkSchema(tool),
  "execute() is a function of an input"({ tool }) {
    expect(typeof tool.execute === "function", "execute must be a function");
  },
  async "execute() answers an input that fits its schema"({ tool, inputOf }) {
    await tryCall(tool, await inputOf());
  },
  async "execute() answers an input with every property of its schema"({ tool, inputOf }) {
    await tryCall(tool, await inputOf({ full: true }));
  },
  async "execute() does not change its input"({ tool, inputOf }) {
    const input = await inputOf();
    const before = structuredClone(input);
    await tryCall(tool, input);
    expect(jsonEqual(input, before), "execute changed the input it was given");
  },
  async "execute() settles when its call was cancelled before it began"({ tool, inputOf }) {
    await tryCall(tool, await inputOf(), contextOf(AbortSignal.abort(new Error("cancelled"))));
  },
  async "a model can call it in a session"({ inputOf, callInSession }) {
    await callInSession(await inputOf());
  },
};

/** Checks that a call passes all checks of a session. A limit ends the turn before the tool runs. */
async function checkCalled(
  create: CreateSubject<Tool>,
  options: ToolSuiteOptions,
  name: string,
  input: JsonObject,
): Promise<void> {
  const tools = [required(await create(), options)];
  const providers = [[{ tool_calls: [{ name, arguments: input }] }, "Done."]];
  const limits = { max_tool_calls: 0 };
  await inSession({ ...sessionOptions(options), tools, providers, limits }, async (session) => {
    const { stop_reason, error } = await session.run();
    const result = session.messages.findLast(({ role }) => role === "tool");
    const problem = error?.message ?? textOf(result?.content);
    expect(stop_reason === "limit:max_tool_calls", `a model cannot call the tool: ${problem}`);
  });
}

async function checkSuccess({ tool, inputOf }: MountedTool): Promise<void> {
  const result = readResult(await tool.execute(deepFreeze(await inputOf()), contextOf()));
  expect(result.success, `the given input must succeed: received ${result.getSerializedOutput()}`);
}

function checkSchema(tool: Tool): void {
  const stated = (tool as { input_schema?: unknown }).input_schema ?? methodOf(tool, "getSchema")?.();
  expect(stated === undefined || isObject(stated), "input_schema must be an object");
  const schema = inputSchemaOf(tool);
  expect(
    schema.type === "object" || schema.type === undefined,
    `input_schema must describe an object: received ${schema.type}`,
  );
  const { properties = {}, required = [] } = schema;
  expect(isObject(properties), "input_schema.properties must be an object");
  expect(Array.isArray(required), "input_schema.required must be a list");
  const unknown = required.filter((key) => !Object.hasOwn(properties, String(key)));
  expect(
    unknown.length === 0 || schema.properties === undefined,
    `input_schema.required names no property: ${unknown.join(", ")}`,
  );
}

/** Calls the tool with a valid input: it must return a valid result, or throw an error that is not a bug. */
async function tryCall(tool: Tool, input: JsonObject, context = contextOf()): Promise<void> {
  let value: unknown;
  try {
    value = await tool.execute(input, context);
  } catch (error) {
    expect(error instanceof Error, `execute threw a value that is not an Error: ${String(error)}`);
    expect(!isCodeError(error), `execute crashed instead of answering: ${error.name}: ${error.message}`);
    return;
  }
  readResult(value);
}

/** Returns the result of a call; fails when the result is not valid. */
function readResult(value: unknown): ToolResult {
  expect(value !== undefined, "execute returned nothing");
  if (isObject(value) && "success" in value) {
    const { success, error, output } = value;
    expect(typeof success === "boolean", "success must be a boolean");
    expect(error === undefined || error === null || isObject(error), "error must be an object or null");
    const survives = output === undefined ||
      jsonEqual(toPlain(output), JSON.parse(JSON.stringify(output) ?? "null"));
    expect(survives, "output must survive JSON: dates, maps, sets and BigInts do not");
  }
  const result = toToolResult(value);
  if (!result.success) {
    expect(
      result.output !== null || result.error?.message,
      "a failure must say why, in error.message or output",
    );
  }
  return result;
}

function contextOf(signal = new AbortController().signal): ToolCallContext {
  return { id: "call_1", signal, session_id: "test-session", progress: () => {} };
}

async function checkCleanup({ cleanups }: Mounted): Promise<void> {
  for (const cleanup of [...cleanups, ...cleanups]) await cleanup();
}
