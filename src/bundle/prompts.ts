/** Builds the texts for models: an instruction with the files that it mentions and those of `context`. */
import { PreampError } from "../sdk/errors.ts";
import { describe } from "../sdk/value_path.ts";
import type { ContextSource } from "./compose.ts";
import { IMPORT_LIMITS } from "./files.ts";
import type { BundleLoader } from "./load.ts";
import { ContextTexts, mentionsOf } from "./mentions.ts";
import { parseReference, type Place, show } from "./places.ts";

/** Levels of mentions below those of an instruction. */
const MENTION_DEPTH = 3;

/** Most names of a folder that a text lists. */
const MAX_LISTED = 500;

/** A text for a model, and the files in it. */
export interface Prompt {
  readonly text: string;
  readonly sources: readonly string[];
}

/** Builds the prompts of one import. */
export class Prompts {
  readonly #loader: BundleLoader;
  /** Whether a text mentions the instructions of the project that an agent works in. */
  mentions_project = false;
  #chars = 0;

  constructor(loader: BundleLoader) {
    this.#loader = loader;
  }

  /** Resolves to the prompt of a session: the instruction, then one block for each file. */
  async ofSession(
    instruction: { readonly text: string; readonly place: Place } | undefined,
    context: Iterable<ContextSource>,
  ): Promise<Prompt | null> {
    const texts = new ContextTexts();
    const sources = new Set<string>();
    if (instruction) {
      sources.add(show(instruction.place));
      await this.#addMentions(instruction.text, instruction.place, texts, sources, MENTION_DEPTH);
    }
    const all = [...context];
    const isNamed = ({ reference }: ContextSource) => reference.includes(":");
    for (const source of [...all.filter((one) => !isNamed(one)), ...all.filter(isNamed)]) {
      await this.#addContext(source, texts, sources);
    }
    const blocks = texts.blocks();
    const parts = instruction ? [instruction.text, ...blocks.length === 0 ? [] : ["---"], ...blocks] : blocks;
    return parts.length === 0 ? null : this.#prompt(parts, sources);
  }

  /** Resolves to the prompt of an agent: one block for each file that it mentions, then its instruction. */
  async ofAgent(instruction: string, place: Place): Promise<Prompt> {
    const texts = new ContextTexts();
    const sources = new Set([show(place)]);
    await this.#addMentions(instruction, place, texts, sources, MENTION_DEPTH);
    return this.#prompt([...texts.blocks(), instruction], sources);
  }

  /** @throws {PreampError} `plan_limit_exceeded` when all prompts together are too long. */
  #prompt(parts: readonly string[], sources: ReadonlySet<string>): Prompt {
    const max = IMPORT_LIMITS.prompt_chars;
    this.#chars += parts.reduce((sum, { length }) => sum + length, 0);
    if (this.#chars > max) {
      const fact = `the texts of it and its agents have more than ${max} characters`;
      throw new PreampError("plan_limit_exceeded", `Cannot import the bundle: ${fact}: import fewer agents`);
    }
    return { text: forModel(parts.join("\n\n")), sources: [...sources] };
  }

  async #addMentions(
    text: string,
    place: Place,
    texts: ContextTexts,
    sources: Set<string>,
    depth: number,
  ): Promise<void> {
    for (const mention of mentionsOf(text)) {
      const found = await this.#mentioned(mention, place);
      if (!found) continue;
      sources.add(show(found.place));
      if (texts.add(mention, found.text) && depth > 0) {
        await this.#addMentions(found.text, found.place, texts, sources, depth - 1);
      }
    }
  }

  async #mentioned(mention: string, from: Place): Promise<{ place: Place; text: string } | null> {
    const { report } = this.#loader;
    const reference = parseReference(mention);
    if (reference.kind !== "named") {
      if (/^(?:\.\/)?(?:AGENTS|CLAUDE)\.md$/.test(mention)) {
        this.mentions_project = true;
        return null;
      }
      // a word such as @someone is no file; /^user:/ and /^project:/ are named
      if (/^(?:\.{0,2}\/|~|.*\.\w{1,8}$)/.test(mention)) {
        report.note(
          `@${mention} in ${show(from)} is a file of the folder that the agent works in, and is not read now`,
          "context-persistent reads such files at each start: config: { memory_files: [FILE] }",
        );
      }
      return null;
    }
    if (/^(?:user|project)$/.test(reference.namespace)) {
      report.warn(`@${mention} in ${show(from)} is left out: a bundle reads files of its own folder only`);
      return null;
    }
    return await this.#firstOf(mention, from, "The mention");
  }

  async #addContext(
    { reference, place }: ContextSource,
    texts: ContextTexts,
    sources: Set<string>,
  ): Promise<void> {
    const found = await this.#firstOf(reference, place, "The text");
    if (!found) return;
    sources.add(show(found.place));
    texts.add(reference, found.text);
  }

  /** Resolves to the file, or the listing of the folder, that a name means; null, with a warning, else. */
  async #firstOf(written: string, from: Place, what: string): Promise<{ place: Place; text: string } | null> {
    const places = this.#loader.candidates(written, from, what);
    if (places === null) return null;
    for (const place of places) {
      for (const path of [place.path, `${place.path}.md`]) {
        const found = { root: place.root, path };
        const text = await this.#loader.files.read(found);
        if (text !== null) return { place: found, text };
      }
      const names = await this.#loader.files.list(place);
      if (names) {
        const more = names.length > MAX_LISTED ? [`… and ${names.length - MAX_LISTED} more`] : [];
        const lines = names.slice(0, MAX_LISTED).map((name) =>
          name.endsWith("/") ? `DIR  ${name.slice(0, -1)}` : `FILE ${name}`
        );
        return { place, text: `Files of ${show(place)}:\n${[...lines, ...more].join("\n")}` };
      }
    }
    this.#loader.report.warn(
      `${what} ${describe(written)} of ${show(from)} is left out: there is no such file`,
    );
    return null;
  }
}

/** Returns a text as a plan has it: `${` in it is no reference to a variable. */
export function forModel(text: string): string {
  return text.replaceAll("${", () => "$${"); // "$$" alone is an escape of replaceAll
}
