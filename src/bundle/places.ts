/**
 * Places of a bundle's files: a root that must not be left, and a path below it; references to places as
 * bundles write them.
 */
import { escapedPath } from "../plan/source/source.ts";
import { gitSourceOfPage, parseGitRoot } from "../plan/source/source_git.ts";

/** A checkout: nothing outside of it is read for its bundles. */
export interface Root {
  /** URL that ends in a slash: `file:`, or that of the raw files. */
  readonly url: string;
  /** What comes before a path in messages: empty for local files, else such as `git+https://host/o/r@ref`. */
  readonly label: string;
}

/** A file or folder of a checkout. */
export interface Place {
  readonly root: Root;
  /** Path below the root, without `.`, `..` and slashes at its ends; empty: the root itself. */
  readonly path: string;
}

/** Returns the URL of a place. */
export function urlOf({ root, path }: Place): string {
  return new URL(escapedPath(path), root.url).href;
}

/** Returns a place for messages: a path, or the reference that names it. */
export function show({ root: { label }, path }: Place): string {
  if (label === "") return path === "" ? "." : path;
  if (!label.startsWith("git+")) return `${label}${path}`;
  return path === "" ? label : `${label}#subdirectory=${path}`;
}

/** Returns the folder of a file. */
export function folderOf({ root, path }: Place): Place {
  return { root, path: path.slice(0, Math.max(0, path.lastIndexOf("/"))) };
}

/** Returns the place that a relative path leads to; null if it leaves the root, or is not relative. */
export function below({ root, path }: Place, relative: string): Place | null {
  if (/^(?:[/\\~]|[a-z][a-z0-9+.-]*:)/i.test(relative)) return null;
  const parts = path === "" ? [] : path.split("/");
  for (const part of relative.split(/[/\\]/)) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return { root, path: parts.join("/") };
}

/** A reference as it is written. */
export type Reference =
  | { readonly kind: "place"; readonly place: Place }
  | { readonly kind: "path"; readonly path: string }
  | { readonly kind: "named"; readonly namespace: string; readonly path: string }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "refused"; readonly fact: string; readonly hint: string };

const FORMS = "use NAME:path, ./path, or git+https://host/org/repo@ref#subdirectory=path";

/** Returns what a reference of an include or a path means. An `@` before it is ignored. */
export function parseReference(written: string): Reference {
  const text = written.trim().replace(/^@(?=[^/])/, "");
  const refuse = (fact: string, hint = FORMS): Reference => ({ kind: "refused", fact, hint });
  if (text === "") return refuse("it is empty");
  if (/^git\+https:/i.test(text)) return gitPlace(text);
  if (/^https?:\/\//i.test(text)) {
    const git = gitSourceOfPage(text); // the address of a repository, as a browser shows it
    return git === undefined ? webPlace(text) : gitPlace(git);
  }
  if (/^(?:[/\\~]|[a-z]:[\\/]|file:)/i.test(text)) {
    return refuse("a bundle names files of its own folder only", "copy the file into the bundle's folder");
  }
  if (/^(?:zip|git|ssh|git\+[a-z]+|zip\+[a-z]+):/i.test(text)) {
    return refuse(`${text.slice(0, text.indexOf(":"))}: is not supported`);
  }
  if (/^\.\.?(?:[/\\]|$)/.test(text)) return { kind: "path", path: text };
  const [, namespace, path] = /^([\w.-]+):(.*)$/s.exec(text) ?? [];
  if (namespace !== undefined && path !== undefined) return { kind: "named", namespace, path };
  return { kind: "name", name: text };
}

function gitPlace(text: string): Reference {
  const found = parseGitRoot(text);
  if ("problem" in found) return { kind: "refused", fact: found.problem, hint: FORMS };
  const { repository, ref, subdirectory } = found.git;
  const label = `git+${repository}${ref === null ? "" : `@${ref}`}`;
  return { kind: "place", place: { root: { url: found.root_url, label }, path: subdirectory ?? "" } };
}

/** A file on the web: its folder is the root. */
function webPlace(text: string): Reference {
  const url = URL.parse(text);
  if (!url || url.pathname.endsWith("/")) {
    return {
      kind: "refused",
      fact: "it is not the URL of a file",
      hint: "name the file, such as …/bundle.md",
    };
  }
  url.hash = "";
  const root_url = new URL(".", url).href;
  const path = decodeURI(url.pathname.slice(new URL(root_url).pathname.length)) + url.search;
  return { kind: "place", place: { root: { url: root_url, label: root_url }, path } };
}
