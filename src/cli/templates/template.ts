/** The type of a template: the files of a new module with placeholders. */

/** The values of the placeholders. */
export interface Words {
  /** Id, such as `tool-clock`. */
  id: string;
  /** Name in snake_case, such as `clock`; for a tool the name that models use. */
  name: string;
}

/** A template: texts with `__ID__` and `__NAME__` in them. */
export interface Template {
  /** Text of `mod.ts`. */
  module: string;
  /** Text of `mod_test.ts`. */
  test: string;
  /** A sentence for README.md that says what the module does. */
  about: string;
  /** Its entry in a plan, for README.md. */
  plan: string;
  /** Config keys for README.md. */
  config: readonly (readonly [key: string, form: string, meaning: string])[];
}

/** Returns a text with its placeholders replaced. */
export function fill(text: string, { id, name }: Words): string {
  return text.replaceAll("__ID__", id).replaceAll("__NAME__", name);
}
