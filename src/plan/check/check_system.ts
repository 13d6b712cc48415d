/**
 * Checks the system instruction of a plan or an agent: text, `{instruction}`, or `{file}` in plans read
 * from disk.
 */
import { isObject } from "../../sdk/json.ts";
import { text } from "./field_checks.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import { describe } from "../../sdk/value_path.ts";

/** Options of {@link checkSystem}. */
export interface SystemOptions {
  /**
   * Whether `system: {file}` is allowed: only in an operator's plan that was read from disk. Default false.
   */
  files?: boolean;
}

/** A text that must still be read from a file. */
export interface FileReference {
  /** Path of its owner: `[]` for the plan, `["agents", name]` for an agent. */
  owner: readonly string[];
  file: string;
}

const KEYS: ReadonlySet<string> = new Set(["instruction", "file"]);
const HINT = 'write system: "text", {instruction: "text"} or {file: ./system.md}';

/** Returns the text of the instruction of `owner`; adds the name of a file to `files` instead. */
export function checkSystem(
  value: unknown,
  owner: readonly string[],
  findings: Findings,
  options: SystemOptions,
  files: FileReference[],
): string | undefined {
  const path = [...owner, "system"];
  if (typeof value === "string") return text(value, path, findings, HINT);
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
  if (instruction !== undefined) return text(instruction, [...path, "instruction"], findings);
  const name = text(file, [...path, "file"], findings);
  if (name === undefined) return undefined;
  if (options.files) files.push({ owner, file: name });
  else {
    const fact = `only a plan that was read from disk may name a file: received ${describe(name)}`;
    const hint = "send the text itself: system: {instruction: …}";
    findings.error([...path, "file"], "file_refused", `Cannot read system.file: ${fact}`, hint);
  }
  return undefined;
}

/** Returns the URL of the file of `system: {file}`: a path relative to the plan's file, or a `file:` URL. */
export function systemFileUrl(file: string, base_url: string | undefined): string {
  if (file.startsWith("file:")) return new URL(file).href;
  const escaped = file.replaceAll("\\", "/").replaceAll("%", "%25").replaceAll("?", "%3F").replaceAll(
    "#",
    "%23",
  );
  return new URL(escaped, base_url).href;
}
