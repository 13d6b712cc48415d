import {
  baseName,
  isAbsolutePath,
  isPathGranted,
  isWithinFolder,
  normalizePath,
  parentFolder,
} from "../../src/sdk/paths.ts";
import { assertEquals, assertRejects } from "../assert.ts";

Deno.test("isWithinFolder() compares whole parts of normalised paths", () => {
  const cases: [string, string, boolean][] = [
    ["/a/b", "/a/b", true],
    ["/a/b", "/a/b/c", true],
    ["/a/b/", "/a//b/./c", true],
    ["/a/b", "/a/bc", false],
    ["/a/b", "/a/b/../c", false],
    ["/", "/a", true],
  ];
  for (const [folder, path, expected] of cases) {
    assertEquals([folder, path, isWithinFolder(folder, path)], [folder, path, expected]);
  }
});

Deno.test("normalizePath() removes . and .. and never leaves the root", () => {
  assertEquals(["/a/./b/../c", "/../..", "//a//"].map(normalizePath), ["/a/c", "/", "/a"]);
  assertEquals(["/a/b", "/a", "/"].map(parentFolder), ["/a", "/", "/"]);
  assertEquals(["/a/b", "/"].map(baseName), ["b", ""]);
  assertEquals(["/a", "a", "./a", ""].map(isAbsolutePath), [true, false, false, false]);
});

Deno.test("isPathGranted() follows links, also of a file that does not exist yet", async () => {
  const links: Record<string, string> = { "/link": "/secret", "/data": "/disk/data" };
  const realPath = (path: string) => {
    if (path === "/locked") return Promise.reject(new Deno.errors.PermissionDenied("no"));
    const known = links[path] ??
      (["/", "/secret", "/disk", "/disk/data", "/log"].includes(path) ? path : null);
    return known === null ? Promise.reject(new Deno.errors.NotFound(path)) : Promise.resolve(known);
  };
  const cases: [granted: unknown, file: string, expected: boolean][] = [
    [true, "/x", true],
    [undefined, "/x", false],
    [false, "/x", false],
    ["/log", "/log/a", false], // not a list
    [["/log"], "/log/new/file.txt", true],
    [["/log/new/file.txt"], "/log/new/file.txt", true],
    [["log", 7, "/other"], "/log/a", false],
    [["/data"], "/disk/data/a", true],
    [["/disk/data"], "/data/a", true],
    [["/log"], "/link/a", false],
    [["/log"], "/log/../link/a", false],
  ];
  for (const [granted, file, expected] of cases) {
    assertEquals([granted, file, await isPathGranted(granted, file, realPath)], [granted, file, expected]);
  }
  await assertRejects(() => isPathGranted(["/log"], "/locked", realPath), Deno.errors.PermissionDenied);
});
