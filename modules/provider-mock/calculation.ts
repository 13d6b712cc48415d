/** The task of an arithmetic prompt: one call of `calculator`, then its result in a sentence. */
import type { FoundExpression } from "./arithmetic.ts";
import type { Task } from "./task.ts";
import { denialReason, firstParagraph } from "./tool_result.ts";

/** Returns the task of working out an expression. */
export function calculation(expression: FoundExpression): Task {
  const { source, normalised } = expression;
  return {
    tool: "calculator",
    wish: `work out ${source}`,
    next([call]) {
      if (!call) return { call: { name: "calculator", arguments: { expression: normalised } } };
      return { say: sentence(source, call.result) };
    },
  };
}

function sentence(source: string, result: string | null): string {
  if (result === null) return `I could not work out ${source}: the tool gave no result.`;
  const denied = denialReason(result);
  if (denied !== null) return `I could not work out ${source}: the call was denied (${denied}).`;
  const answer = firstParagraph(result);
  return answer !== "" && Number.isFinite(Number(answer))
    ? `${source} is ${answer}.`
    : `I could not work out ${source}. The tool says: ${answer}`;
}
