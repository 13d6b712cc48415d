/**
 * Runs the contract suites of `preamp/testing` outside of a test runner. Each case mounts the module again.
 */
import { type Check, failed, passed } from "../../kernel/module_checks.ts";
import { errorMessage, errorName } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import { testContext } from "../../testing/contracts/context.ts";
import { testHook } from "../../testing/contracts/hook.ts";
import { testOrchestrator } from "../../testing/contracts/orchestrator.ts";
import { testProvider } from "../../testing/contracts/provider.ts";
import type { SuiteOptions, TestFunction } from "../../testing/contracts/suite.ts";
import { testTool } from "../../testing/contracts/tool.ts";
import type { Module, ModuleType } from "../../sdk/types.ts";
import { permissionsOf, thrownText, type ValidateOptions } from "./contract_check.ts";

/** Registers the cases of a suite. */
type Suite = (name: string, create: () => Module, options: SuiteOptions) => void;

const SUITES: Readonly<Record<ModuleType, Suite>> = {
  tool: testTool,
  provider: testProvider,
  hook: testHook,
  orchestrator: testOrchestrator,
  context: testContext,
};

/**
 * Cases whose failure is an error. Failures of other cases are warnings, because a module for another host
 * may fail them and still work.
 */
export const REQUIRED_CASES: Readonly<Record<ModuleType, readonly string[]>> = {
  tool: [
    "mount() mounts a tool",
    "name is valid for models",
    "execute() is a function of an input",
    "execute() answers an input that fits its schema",
  ],
  provider: [
    "mount() mounts a provider",
    "name is not empty",
    "getInfo() returns id, display_name and whole-number defaults",
    "listModels() resolves to models with ids",
    "parseToolCalls() finds none in a response of text",
  ],
  hook: [
    "mount() registers a handler",
    "mount() returns nothing or a cleanup",
    "handlers answer test:event with nothing or a hook result",
    "handlers answer events without data",
    "handlers answer events with empty data",
    "cleanup works, awaited",
  ],
  orchestrator: [
    "mount() mounts an orchestrator whose execute is a function",
    "execute() resolves to the provider's text",
    "execute() stores the prompt, then the answer",
    "execute() handles an empty prompt",
  ],
  context: [
    "mount() mounts a context",
    "all five methods are there",
    "addMessage() keeps messages whole and in order",
    "addMessage() takes a message without fields",
    "clear() empties the history",
    "getMessagesForRequest() shows everything when there is room",
  ],
};

/** Resolves to one check for each case, in order. */
export async function runSuite(
  type: ModuleType,
  module: Module,
  options: Pick<ValidateOptions, "config" | "allow" | "call_ms" | "onStep" | "placeOf">,
): Promise<Check[]> {
  const checks: Check[] = [];
  const not_tried = new Map<string, string>();
  const note = (title: string, reason: string) => void not_tried.set(title, `not tried: ${reason}`);
  for (const [title, run] of casesOf(type, module, options, note)) {
    options.onStep(title);
    try {
      await run();
      checks.push(passed(title, not_tried.get(title) ?? "ok"));
    } catch (error) {
      checks.push(failedCase(type, title, error, options.placeOf));
    }
  }
  return checks;
}

/** Returns the titles and functions of a suite's cases. */
export function casesOf(
  type: ModuleType,
  module: Module,
  { config, allow, call_ms }: Pick<ValidateOptions, "config" | "allow" | "call_ms">,
  not_tried: (title: string, reason: string) => void = () => {},
): [title: string, run: () => Promise<void>][] {
  const cases: [string, () => Promise<void>][] = [];
  const test: TestFunction = (name, run) => cases.push([name.slice("module: ".length), run]);
  const create = () => ({ mount: module.mount });
  const coordinator = { permissions: permissionsOf(allow) };
  const options = { config: structuredClone(config), coordinator, deadline_ms: call_ms, test, not_tried };
  SUITES[type]("module", create, options);
  return cases;
}

function failedCase(
  type: ModuleType,
  title: string,
  error: unknown,
  placeOf: ValidateOptions["placeOf"],
): Check {
  const reason = errorName(error) === "AssertionError" ? errorMessage(error) : thrownText(error, placeOf);
  if (isOutOfReach(error)) {
    return { name: title, passed: true, severity: "info", message: `not tried: ${reason}` };
  }
  return failed(title, reason, REQUIRED_CASES[type].includes(title) ? "error" : "warning");
}

/**
 * Returns whether a case failed because the sandbox lacks a permission, the network or a credential, which
 * is not the module's fault.
 */
function isOutOfReach(error: unknown): boolean {
  for (let cause = error, depth = 0; isObject(cause) && depth < 8; cause = cause.cause, depth++) {
    if (
      ["NotCapable", "NetworkError", "AuthenticationError", "ConfigurationError"].includes(errorName(cause))
    ) {
      return true;
    }
  }
  return false;
}
