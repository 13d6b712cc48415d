/** An approval system with scripted answers. */
import type { ApprovalQuestion } from "../hooks.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";

/**
 * A scripted answer: an option's label, `timeout` (times out at once), `never` (never answers; the caller
 * must time out), an error to throw, or a function that decides.
 */
export type ScriptedAnswer = string | Error | ((question: ApprovalQuestion) => string | Promise<string>);

/** Thrown by an approval system after a timeout. */
export class ApprovalTimeoutError extends Error {
  /** Always `ApprovalTimeoutError`. */
  override readonly name = "ApprovalTimeoutError";
}

/** An approval system that answers in order. The last answer repeats; the default is `Deny`. */
export class FakeApproval {
  /** All questions, in order. */
  readonly requests: ApprovalQuestion[] = [];
  readonly #answers: readonly ScriptedAnswer[];

  /** Creates an approval system with a script. */
  constructor(answers: readonly ScriptedAnswer[] = []) {
    this.#answers = answers;
  }

  /**
   * Resolves to the chosen option's label.
   *
   * @throws {ApprovalTimeoutError} when the script says `timeout`.
   */
  async requestApproval(question: ApprovalQuestion): Promise<string> {
    const answer = this.#answers[Math.min(this.requests.length, this.#answers.length - 1)] ?? "Deny";
    this.requests.push(structuredClone(question));
    if (answer === "never") return await new Promise<string>(() => {});
    if (answer === "timeout") throw new ApprovalTimeoutError("no answer in time");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? await answer(question) : answer;
  }
}

withSnakeCase(FakeApproval);
