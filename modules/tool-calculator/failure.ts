/** What went wrong with an expression: always the model's to mend, so never more than a message and a kind. */

/** The `type` of a failed calculation. */
export type FailureKind =
  | "tool_input_invalid"
  | "expression_too_long"
  | "expression_too_deep"
  | "syntax_error"
  | "unknown_name"
  | "division_by_zero"
  | "domain_error"
  | "overflow";

/** Ends a calculation; `mod.ts` turns it into a failed result. */
export class CalculationError extends Error {
  /** The kind, told to the model as `error.type`. */
  readonly kind: FailureKind;

  /** Creates the failure of one kind. */
  constructor(kind: FailureKind, fact: string) {
    super(`Cannot evaluate the expression: ${fact}`);
    this.kind = kind;
  }
}
