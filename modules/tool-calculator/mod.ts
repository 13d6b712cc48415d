/** `tool-calculator`: arithmetic for the model. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn, Tool } from "preamp/base";
import { CalculationError, evaluate, formatNumber, MAX_EXPRESSION_CHARS } from "./evaluate.ts";

export const module: ModuleInfo = {
  id: "tool-calculator",
  type: "tool",
  version: "1.0.0",
  description: "Evaluates arithmetic expressions with a parser, without eval.",
  config_schema: { type: "object", properties: {} },
};

const calculator: Tool = {
  name: "calculator",
  description:
    "Perform mathematical calculations. Operators: + - * / % ^ and parentheses; decimals and 1e3; " +
    "constants pi, e, tau; functions sqrt, cbrt, abs, sign, min, max, round(x, digits), floor, ceil, trunc, exp, ln, " +
    "log(x, base) (natural without base), log10, log2, sin, cos, tan (radians), asin, acos, atan, atan2, sinh, cosh, " +
    "tanh, hypot, pow, mod.",
  input_schema: {
    type: "object",
    properties: {
      expression: {
        type: "string",
        description: "Mathematical expression to evaluate, such as (2 + 3) * sqrt(16)",
        maxLength: MAX_EXPRESSION_CHARS,
      },
    },
    required: ["expression"],
  },
  risk: "low",
  idempotent: true,
  execute({ expression }) {
    try {
      if (typeof expression !== "string") {
        throw new CalculationError("tool_input_invalid", `must be text: received ${typeof expression}`);
      }
      return { success: true, output: formatNumber(evaluate(expression)) };
    } catch (error) {
      if (!(error instanceof CalculationError)) throw error;
      return { success: false, error: { message: error.message, type: error.kind } };
    }
  },
};

/** Mounts the tool `calculator`. It has no config. */
export async function mount(coordinator: Coordinator, _config: JsonObject = {}): Promise<MountReturn> {
  await coordinator.mount("tools", calculator, calculator.name);
  return { name: module.id, version: module.version, provides: [calculator.name] };
}
