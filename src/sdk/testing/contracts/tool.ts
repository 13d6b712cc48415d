/** The tool contract as a test suite. */
import { deepFreeze, isObject, jsonEqual, type JsonObject, toPlain } from "../../json.ts";
import { inputSchemaOf, methodOf } from "../../snake_case_aliases.ts";
import { type Tool, TOOL_NAME, type ToolCallContext, type ToolResult, toToolResult } from "../../tools.ts";
import { exampleInput, type ExampleInputOptions } from "../example_input.ts";
import {
  casesOf,
  type CreateSubject,
  expect,
  isCodeError,
  mountSubject,
  NotTriedError,
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

/**
 * Registers the cases that every tool must pass. `create` makes a new module or tool per case. The suite
 * calls the tool with inputs made from its schema, so a tool with effects needs a place where they do no
 * harm.
 */
export function testTool(name: string, create: CreateSubject<Tool>, options: ToolSuiteOptions = {}): void {
  const test = casesOf(name, options);
  const onTool = (body: (tool: Tool) => Promise<void> | void) => () =>
    withSubject(create, "tools", options, ({ coordinator }) => {
      const tool = options.tool === undefined
        ? Object.values(coordinator.tools)[0]
        : coordinator.tools[options.tool];
      expect(tool, "No tool was mounted and mount() did not return a Tool instance");
      return body(tool);
    });
  /**
   * Calls the tool with the given input, or with one made from its schema; without either, the case is not
   * tried.
   */
  const onInput = (
    input_options: ExampleInputOptions,
    body: (tool: Tool, input: JsonObject) => Promise<void>,
  ) =>
    onTool(async (tool) => {
      const example = options.input && !input_options.full
        ? { input: structuredClone(options.input) }
        : await exampleInput(inputSchemaOf(tool), input_options);
      if ("problem" in example) {
        throw new NotTriedError(`no input was made from input_schema: ${example.problem}`);
      }
      await body(tool, example.input);
    });

  test("mount() mounts a tool", onTool(() => {}));
  test(
    "name is valid for models",
    onTool((tool) => {
      const fits = typeof tool.name === "string" && TOOL_NAME.test(tool.name);
      expect(fits, `name must be 1 to 64 letters, digits, _ or -: received ${JSON.stringify(tool.name)}`);
    }),
  );
  test(
    "description is not empty",
    onTool((tool) => {
      expect(
        typeof tool.description === "string" && tool.description.trim(),
        "description must be a non-empty text",
      );
    }),
  );
  test("input_schema is a JSON Schema of an object", onTool(checkSchema));
  test(
    "execute() is a function of an input",
    onTool((tool) => {
      expect(typeof tool.execute === "function", "execute must be a function");
    }),
  );
  test("execute() answers an input that fits its schema", onInput({}, (tool, input) => tryCall(tool, input)));
  test(
    "execute() answers an input with every property of its schema",
    onInput({ full: true }, (tool, input) => tryCall(tool, input)),
  );
  test(
    "execute() does not change its input",
    onInput({}, async (tool, input) => {
      const before = structuredClone(input);
      await tryCall(tool, input);
      expect(jsonEqual(input, before), "execute changed the input it was given");
    }),
  );
  test(
    "execute() settles when its call was cancelled before it began",
    onInput({}, (tool, input) => tryCall(tool, input, contextOf(AbortSignal.abort(new Error("cancelled"))))),
  );
  if (options.input !== undefined) {
    const input = deepFreeze(structuredClone(options.input));
    test(
      "execute() succeeds with a good input",
      onTool(async (tool) => {
        const result = readResult(await tool.execute(input, contextOf()));
        expect(result.success, `the given input must succeed: received ${result.getSerializedOutput()}`);
      }),
    );
  }
  test("cleanup works, once and twice", () => checkCleanup(create, options));
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

async function checkCleanup(create: CreateSubject<Tool>, options: SuiteOptions): Promise<void> {
  const { cleanups } = await mountSubject(create, "tools", options);
  for (const cleanup of [...cleanups, ...cleanups]) await cleanup();
}
