/** The editor of the plan: a text area, line numbers beside it, and marks at the lines with findings. */
import { useState } from "preact/hooks";
import type { AppState } from "../state/app_state.ts";
import { visible } from "../ui/text.tsx";
import { type Edit, hiddenIn, indent, lineAt, marksOf, newLine, offsetOf } from "./editing.ts";

const ID = "plan-text";

/** Puts the cursor at a line and column of the plan. */
export function goTo(line: number, column?: number): void {
  const box = document.getElementById(ID) as HTMLTextAreaElement;
  const at = offsetOf(box.value, line, column);
  box.setSelectionRange(at, at);
  box.focus(); // shows the findings of the line of the cursor
  box.closest(".scroll")!.scrollTop = Math.max(0, (line - 4) * LINE_PX);
}

/** Height of a line; the style sheet has the same. */
const LINE_PX = 18;

/** The editor. Tab leaves it; Ctrl and a bracket indents, and Enter continues the indentation. */
export function Editor({ state }: { state: AppState }) {
  const { plan } = state;
  const [line, setLine] = useState(0);
  const text = plan.text.value;
  const marks = marksOf([...plan.findings.value, ...hiddenIn(text)]);
  const lines = lineAt(text, text.length + 1);
  const shown = marks.find((mark) => mark.line === line);
  const follow = ({ currentTarget: box }: { currentTarget: HTMLTextAreaElement }) =>
    setLine(lineAt(box.value, box.selectionStart));
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
    const { currentTarget: box, code, key, ctrlKey, metaKey, shiftKey } = event;
    const { value, selectionStart: start, selectionEnd: end } = box;
    if (key === "Enter" && (ctrlKey || metaKey)) {
      event.preventDefault();
      if (state.what_if.value) state.runWhatIf();
      else state.run();
    } else if (key === "Enter" && !shiftKey && !event.isComposing) {
      event.preventDefault();
      apply(box, newLine(value, start, end));
    } else if (ctrlKey && (code === "BracketRight" || code === "BracketLeft")) {
      event.preventDefault();
      const edit = indent(value, start, end, code === "BracketRight");
      if (edit) apply(box, edit);
    }
  };
  return (
    <div class="editor scroll">
      <pre
        class="gutter"
        aria-hidden="true"
      >{Array.from({ length: lines }, (_, at) => at + 1).join("\n")}</pre>
      {marks.map((mark) => (
        <div
          class={`mark ${mark.level}`}
          style={{ "--line": mark.line }}
          title={mark.text}
          aria-hidden="true"
          onMouseEnter={() => setLine(mark.line)}
          onMouseLeave={() => setLine(0)}
          key={mark.line}
        >
          {mark.level === "error" ? "✗" : "!"}
        </div>
      ))}
      <textarea
        id={ID}
        aria-label="Plan, as YAML or JSON"
        aria-describedby="plan-keys"
        aria-invalid={plan.phase.value === "invalid"}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        wrap="off"
        rows={lines}
        value={text}
        onInput={(event) => {
          plan.edit(event.currentTarget.value);
          follow(event);
        }}
        onKeyDown={onKeyDown}
        onKeyUp={follow}
        onClick={follow}
        onFocus={follow}
        onBlur={() => setLine(0)}
      />
      {shown && (
        <div class={`at-line ${shown.level}`} style={{ "--line": shown.line }} aria-hidden="true">
          {visible(shown.text)}
        </div>
      )}
      <div id="plan-keys" class="hidden-text">
        Control and right bracket indents, Control and left bracket takes it back, Control and Enter runs.
      </div>
    </div>
  );
}

/** Edits the text in a way that the browser can undo. */
function apply(box: HTMLTextAreaElement, { from, to, text, selection }: Edit): void {
  box.setSelectionRange(from, to);
  document.execCommand("insertText", false, text);
  box.setSelectionRange(...selection);
}
