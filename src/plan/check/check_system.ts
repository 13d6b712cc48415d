/**
 * Checks the system instruction of a plan or an agent: text, `{instruction}`, or `{file}` in plans read
 * from disk.
 */
import { isObject } from "../../sdk/json.ts";
import { text } from "./field_checks.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import { describe, type Path } from "../../sdk/value_path.ts";

/** A system instruction: its text, or the file that holds it. */
export type SystemText = { text: string } | { file: string };

const KEYS: ReadonlySet<string> = new Set(["instruction", "file"]);
const HINT = 'write system: "text", {instruction: "text"} or {file: ./system.md}';

/** Returns the system instruction at `path`. A `{file}` is accepted only with `files`. */
export function checkSystem(
  value: unknown,
  path: Path,
  findings: Findings,
  options: { files: boolean },
): SystemText | undefined {
  if (typeof value === "string") {
    const found = text(value, path, findings, HINT);
    return found === undefined ? undefined : { text: found };
  }
  if (!isObject(value)) {
    const message = `Cannot read system: must be text or an object: received ${describe(value)}`;
    findings.error(path, "type", message, HINT);
    return undefined;
  }
  checkKeys(value, KEYS, path, findings, "error");
  const { instruction, file } = value;
  if ((instruction === undefined) === (file === undefined)) {
    const message = `Cannot read system: must have one of instruction and file: received ${
      instruction === undefined ? "neither" : "both"
    }`;
    findings.error(path, "value", message, HINT);
    return undefined;
  }
  if (instruction !== undefined) {
    const found = text(instruction, [...path, "instruction"], findings);
    return found === undefined ? undefined : { text: found };
  }
  const name = text(file, [...path, "file"], findings);
  if (name === undefined) return undefined;
  if (!options.files) {
    const message = `Cannot read system.file: only a plan that was read from disk may name a file: received ${
      describe(name)
    }`;
    findings.error(
      [...path, "file"],
      "file_refused",
      message,
      "send the text itself: system: {instruction: …}",
    );
    return undefined;
  }
  return { file: name };
}
