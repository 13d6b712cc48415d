/** A person who answers approvals by script. */
import type { ApprovalQuestion } from "../hooks.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";

/**
 * What happens when the person is asked: an option's label, `timeout` (the time is over at once), `never` (no answer: the
 * one who asks must end it), an error to throw, or a function that decides.
 */
export type ScriptedAnswer = string | Error | ((question: ApprovalQuestion) => string | Promise<string>);

/** What an approval system throws when nobody answered in time. */
export class ApprovalTimeoutError extends Error {
  /** Always `ApprovalTimeoutError`. */
  override readonly name = "ApprovalTimeoutError";
}

/** Answers in order; the last answer repeats; without any, the answer is `Deny`. */
export class FakeApproval {
  /** What was asked, in order. */
  readonly requests: ApprovalQuestion[] = [];
  readonly #answers: readonly ScriptedAnswer[];

  /** Creates a person with a script. */
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
    if (answer === "timeout") throw new ApprovalTimeoutError("nobody answered in time");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? await answer(question) : answer;
  }
}

withSnakeCase(FakeApproval);
