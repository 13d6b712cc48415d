/** The tools `list` and `glob`: what a folder contains, and files by pattern. */
import { type FileAccess, FileError } from "../files/access.ts";
import { findFiles } from "../files/find.ts";
import { likenessTo } from "./match.ts";
import { fileFailure } from "./shared.ts";
import { defineTool, parentFolder, type Tool } from "preamp/base";

const MAX_ENTRIES = 1000;
const DEFAULT_FOUND = 100;
const MAX_NAMED = 5;

/** Returns the tool `list`. */
export function listTool(access: FileAccess): Tool {
  return defineTool({
    name: "list",
    description: "List a folder: folders end in /, files have their size in bytes.",
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "Folder; default: the working folder" },
        limit: { type: "integer", minimum: 1, maximum: MAX_ENTRIES },
      },
    },
    risk: "low",
    idempotent: true,
    async execute({ path = ".", limit }) {
      try {
        const { path: folder, info } = await access.readable(path);
        if (!info.isDirectory) throw new FileError(`${path} is not a folder`);
        return await listFolder(access, folder, limit);
      } catch (error) {
        return fileFailure(error);
      }
    },
  });
}

/** Returns the entries of a folder as text. */
export async function listFolder(access: FileAccess, folder: string, limit = MAX_ENTRIES): Promise<string> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  entries.sort((a, b) => a.name < b.name ? -1 : 1);
  const lines = await Promise.all(
    entries.slice(0, limit).map(async ({ name, isDirectory, isSymlink }) => {
      if (isDirectory) return `${name}/`;
      if (isSymlink) return `${name} (link)`;
      const info = await Deno.lstat(`${folder}/${name}`).catch(() => null);
      return `${name} ${info?.size ?? "?"}`;
    }),
  );
  if (lines.length === 0) return `${access.display(folder)} is empty`;
  const more = entries.length - lines.length;
  return more > 0 ? `${lines.join("\n")}\n(${more} more)` : lines.join("\n");
}

/** Returns the tool `glob`. */
export function globTool(access: FileAccess): Tool {
  return defineTool({
    name: "glob",
    description:
      'Find files by pattern, such as "src/**/*.ts", newest first. What .gitignore names is left out, unless ' +
      "path or the pattern names it.",
    input: {
      type: "object",
      properties: {
        pattern: { type: "string", description: "A pattern without / matches names in every folder" },
        path: { type: "string", description: "Folder to search; default: the working folder" },
        limit: { type: "integer", minimum: 1, maximum: MAX_ENTRIES },
      },
      required: ["pattern"],
      additionalProperties: false,
    },
    risk: "low",
    idempotent: true,
    async execute({ pattern, path = ".", limit = DEFAULT_FOUND }, call) {
      try {
        const { path: folder, info } = await access.readable(path);
        if (!info.isDirectory) throw new FileError(`${path} is not a folder`);
        const found: { path: string; changed: number }[] = [];
        const { notes } = await findFiles(access, { path, pattern, signal: call?.signal }, (file) => {
          found.push({ path: file.path, changed: changedAt(file.path) });
        });
        found.sort((a, b) => b.changed - a.changed);
        const lines = found.slice(0, limit).map((file) => access.display(file.path));
        const more = found.length - lines.length;
        const all = [...more > 0 ? [`${more} more`] : [], ...notes];
        if (found.length === 0) lines.push(`No file matches ${pattern} in ${access.display(folder)}`);
        return lines.join("\n") + (all.length > 0 ? `\n(${all.join("; ")})` : "");
      } catch (error) {
        return fileFailure(error);
      }
    },
  });
}

function changedAt(path: string): number {
  try {
    return Deno.lstatSync(path).mtime?.getTime() ?? 0;
  } catch {
    return 0; // it was removed meanwhile
  }
}

/** Returns a hint with the names in a missing path's folder that are most like it; empty without any. */
export async function nearNames(access: FileAccess, path: string): Promise<string> {
  const wanted = path.split("/").at(-1)?.toLowerCase() ?? "";
  const folder = path.startsWith("/")
    ? parentFolder(path)
    : path.includes("/")
    ? path.slice(0, path.lastIndexOf("/"))
    : ".";
  try {
    const { path: real } = await access.readable(folder);
    const names = await Array.fromAsync(Deno.readDir(real), ({ name }) => name);
    const like = likenessTo(wanted);
    const near = names.map((name) => ({ name, score: like(name.toLowerCase()) }))
      .filter(({ score }) => score >= 0.5).sort((a, b) => b.score - a.score).slice(0, MAX_NAMED);
    return near.length === 0 ? "" : `; near it are ${near.map(({ name }) => name).join(", ")}`;
  } catch {
    return ""; // the folder is missing too, or not granted
  }
}
