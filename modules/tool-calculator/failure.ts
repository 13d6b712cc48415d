/** The failure of a calculation, which the model can correct. */

/** Kinds of failures, the `type` of a failed result. */
export type FailureKind =
  | "tool_input_invalid"
  | "expression_too_long"
  | "expression_too_deep"
  | "syntax_error"
  | "unknown_name"
  | "division_by_zero"
  | "domain_error"
  | "overflow";

/** Thrown when an expression cannot be evaluated; the tool turns it into a failed result. */
export class CalculationError extends Error {
  /** The `error.type` of the failed result. */
  readonly kind: FailureKind;

  /** Creates a failure. */
  constructor(kind: FailureKind, fact: string) {
    super(`Cannot evaluate the expression: ${fact}`);
    this.kind = kind;
  }
}
