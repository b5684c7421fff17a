//! Terminals into which a program can type, told by their marks in the environment.
//!
//! Promise: none. A terminal that is not recognised may be scriptable all the same; this is for a warning only.

/// The name of the terminal, if it is one that programs can type into (`tmux send-keys`, `screen -X stuff`,
/// `kitty @ send-text`, `wezterm cli send-text`, AppleScript, an editor's extensions…).
pub fn scriptable(env: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    // Multiplexers first: they run inside the others, and it is they who type.
    const MARKS: [(&str, &str); 14] = [
        ("TMUX", "tmux"),
        ("STY", "screen"),
        ("ZELLIJ", "Zellij"),
        ("NVIM", "Neovim"),
        ("VIM_TERMINAL", "Vim"),
        ("INSIDE_EMACS", "Emacs"),
        ("KITTY_LISTEN_ON", "kitty"),
        ("KITTY_WINDOW_ID", "kitty"),
        ("WEZTERM_UNIX_SOCKET", "WezTerm"),
        ("WEZTERM_PANE", "WezTerm"),
        ("KONSOLE_DBUS_SERVICE", "Konsole"),
        ("ITERM_SESSION_ID", "iTerm2"),
        ("VSCODE_INJECTION", "Visual Studio Code"),
        ("GHOSTTY_RESOURCES_DIR", "Ghostty"),
    ];
    if let Some((_, name)) = MARKS.iter().find(|(mark, _)| set(mark)) {
        return Some(name);
    }
    match env("TERM_PROGRAM").as_deref() {
        Some("tmux") => return Some("tmux"),
        Some("WezTerm") => return Some("WezTerm"),
        Some("iTerm.app") => return Some("iTerm2"),
        Some("Apple_Terminal") => return Some("Terminal"),
        Some("vscode") => return Some("Visual Studio Code"),
        Some("ghostty") => return Some("Ghostty"),
        _ => {}
    }
    if env("TERMINAL_EMULATOR").is_some_and(|name| name.starts_with("JetBrains")) {
        return Some("JetBrains");
    }
    // The variables above do not survive `sudo` or `ssh`; the type of the terminal does.
    match env("TERM")?.as_str() {
        "xterm-kitty" => Some("kitty"),
        term if term.starts_with("tmux") => Some("tmux"),
        term if term.starts_with("screen") => Some("tmux or screen"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> Option<&'static str> {
        scriptable(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn multiplexers_are_named_before_what_they_run_in() {
        assert_eq!(named(&[("TMUX", "/tmp/tmux-0/default,1,0"), ("TERM_PROGRAM", "iTerm.app")]), Some("tmux"));
        assert_eq!(named(&[("STY", "1.pts"), ("TERM", "screen")]), Some("screen"));
    }

    #[test]
    fn the_type_tells_when_the_variables_are_gone() {
        assert_eq!(named(&[("TERM", "screen-256color")]), Some("tmux or screen"));
        assert_eq!(named(&[("TERM", "xterm-kitty")]), Some("kitty"));
    }

    #[test]
    fn a_plain_terminal_has_no_name() {
        assert_eq!(named(&[("TERM", "xterm-256color"), ("TMUX", "")]), None);
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[("TERM_PROGRAM", "vscode")]), Some("Visual Studio Code"));
    }
}
