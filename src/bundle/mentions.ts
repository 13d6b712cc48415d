/** Finds the files that a text mentions as `@name:path`, and puts their texts beside it for a model. */

/** A mention; what comes before an `@` of a mail address is a letter or a digit. */
const MENTION = /(?<![\w.@/+-])@([A-Za-z0-9_.~/][\w:./~-]{0,300})/g;

/** Returns the mentions of a text without their `@`, each once, in order. None is in code. */
export function mentionsOf(text: string): string[] {
  const found = new Set<string>();
  let fence: string | undefined;
  for (const line of text.split("\n")) {
    const [, mark] = /^[ \t]*(`{3,}|~{3,})/.exec(line) ?? [];
    if (mark !== undefined && fence === undefined) fence = mark;
    else if (fence !== undefined) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined;
    } else {
      for (const [, name = ""] of withoutCode(line).matchAll(MENTION)) {
        const path = name.replace(/[.:]+$/, "");
        if (path !== "") found.add(path);
      }
    }
  }
  return [...found];
}

/** Returns a line without what is between two runs of as many backticks. */
function withoutCode(line: string): string {
  const runs = [...line.matchAll(/`+/g)];
  const next = new Map<number, number>(); // length of a run → the run of that length that was seen last
  const closing = runs.map(() => -1);
  for (let index = runs.length - 1; index >= 0; index--) {
    const [{ length }] = runs[index]!;
    closing[index] = next.get(length) ?? -1;
    next.set(length, index);
  }
  let plain = "";
  let from = 0;
  for (let index = 0; index < runs.length; index++) {
    const close = closing[index]!;
    if (close === -1) continue; // it is no code
    plain += `${line.slice(from, runs[index]!.index)} `;
    from = runs[close]!.index + runs[close]![0].length;
    index = close;
  }
  return plain + line.slice(from);
}

/** A text that a model is given beside its instruction. */
export interface ContextText {
  /** Names under which it was mentioned. */
  labels: string[];
  text: string;
}

/** Texts in their order, each once. */
export class ContextTexts {
  readonly #texts = new Map<string, ContextText>();

  /** Adds a text; returns false if it is there, and then only adds its name. */
  add(label: string, text: string): boolean {
    const known = this.#texts.get(text);
    if (!known) {
      this.#texts.set(text, { labels: [label], text });
      return true;
    }
    if (!known.labels.includes(label)) known.labels.push(label);
    return false;
  }

  /** Returns the blocks of the texts. */
  blocks(): string[] {
    return [...this.#texts.values()].map(({ labels, text }) =>
      `<context_file paths="${
        labels.map((label) => `@${label}`).join(", ")
      }">\n${text.trim()}\n</context_file>`
    );
  }
}
