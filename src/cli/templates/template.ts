/** What a template is: the files of a new module with words to be filled in. */

/** The words of a new module. */
export interface Words {
  /** `tool-clock`. */
  id: string;
  /** `clock`, in snake_case: what a model calls a tool by. */
  name: string;
}

/** A template: texts with `__ID__` and `__NAME__` in them. */
export interface Template {
  /** `mod.ts`. */
  module: string;
  /** `mod_test.ts`. */
  test: string;
  /** What the module does, in a sentence, and its entry in a plan, for README.md. */
  about: string;
  plan: string;
  /** README's list of config keys. */
  config: readonly (readonly [key: string, form: string, meaning: string])[];
}

/** Returns a text with its words filled in. */
export function fill(text: string, { id, name }: Words): string {
  return text.replaceAll("__ID__", id).replaceAll("__NAME__", name);
}
