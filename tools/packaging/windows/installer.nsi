; The installer, for one user and without an administrator; if one starts it, `join` makes a service. Silent: gleaner-volunteer-setup.exe /S [/LINE=gleaner://...].
; build tells the folder FILES, VERSION and KILOBYTES.
Target amd64-unicode
!include FileFunc.nsh
!include LogicLib.nsh
!include nsDialogs.nsh
!include WinMessages.nsh

Name "Gleaner volunteer"
OutFile "${FILES}/gleaner-volunteer-setup.exe"
RequestExecutionLevel user
InstallDir "$LOCALAPPDATA\Programs\Gleaner"
SetCompressor /SOLID lzma
SetDateSave off
ShowInstDetails hide
BrandingText "Gleaner ${VERSION}"

!define APPS "Software\Microsoft\Windows\CurrentVersion\Uninstall\Gleaner"
!define SHORTCUT "$SMPROGRAMS\Gleaner volunteer.lnk"
!define ICON_CLASS GleanerVolunteerIcon
; How often half a second is waited for the volunteer to hand its shards over.
!define WAITS_MAX 240

Var Line
Var Field

Page custom AskForLine TakeLine
Page instfiles
UninstPage uninstConfirm
UninstPage instfiles

; Takes the word behind /LINE=, which NSIS's own function would end at the slashes in it.
Function .onInit
  ${GetParameters} $0
  StrCpy $2 $0 6
  ${DoUntil} $2 == "/LINE="
    ${IfThen} $2 == "" ${|} Return ${|}
    StrCpy $0 $0 "" 1
    StrCpy $2 $0 6
  ${Loop}
  StrCpy $0 $0 "" 6
  StrCpy $2 $0 1
  ${DoUntil} $2 == ""
    ${IfThen} $2 == " " ${|} Return ${|}
    ${IfThen} $2 != '"' ${|} StrCpy $Line "$Line$2" ${|}
    StrCpy $0 $0 "" 1
    StrCpy $2 $0 1
  ${Loop}
FunctionEnd

Function AskForLine
  nsDialogs::Create 1018
  Pop $0
  ${NSD_CreateLabel} 0 0 100% 36u "Paste the line that the owner of a run gave you: gleaner://...$\r$\n$\r$\nWithout one \
nothing runs yet: the entry in the Start menu asks for it."
  Pop $0
  ${NSD_CreateText} 0 44u 100% 12u "$Line"
  Pop $Field
  nsDialogs::Show
FunctionEnd

Function TakeLine
  ${NSD_GetText} $Field $Line
FunctionEnd

; Deletes the program, which takes until the volunteer and its icon have ended.
!macro DELETE_PROGRAM
  FindWindow $0 "${ICON_CLASS}"
  ${If} $0 <> 0
    SendMessage $0 ${WM_CLOSE} 0 0 /TIMEOUT=5000
  ${EndIf}
  StrCpy $1 ${WAITS_MAX}
  ${DoWhile} $1 > 0
    Delete "$INSTDIR\gleaner-volunteer.exe"
    ${IfNotThen} ${FileExists} "$INSTDIR\gleaner-volunteer.exe" ${|} ${ExitDo} ${|}
    Sleep 500
    IntOp $1 $1 - 1
  ${Loop}
!macroend

Section
  SetOutPath "$INSTDIR"
  ${If} ${FileExists} "$INSTDIR\gleaner-volunteer.exe"
    DetailPrint "The volunteer that runs hands over what it holds"
    nsExec::Exec '"$INSTDIR\gleaner-volunteer.exe" finish'
    Pop $0
    !insertmacro DELETE_PROGRAM
  ${EndIf}
  File "${FILES}/gleaner-volunteer.exe"
  File "${FILES}/LICENSE.txt"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "${SHORTCUT}" "$INSTDIR\gleaner-volunteer.exe" "join kept" "" 0 SW_SHOWNORMAL "" "Lends this machine"
  WriteRegStr HKCU "${APPS}" DisplayName "Gleaner volunteer"
  WriteRegStr HKCU "${APPS}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${APPS}" Publisher "Gleaner"
  WriteRegStr HKCU "${APPS}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${APPS}" UninstallString '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${APPS}" QuietUninstallString '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${APPS}" EstimatedSize ${KILOBYTES}
  WriteRegDWORD HKCU "${APPS}" NoModify 1
  WriteRegDWORD HKCU "${APPS}" NoRepair 1

  StrCpy $0 0
  ReadEnvStr $1 ProgramData
  ${If} $Line != ""
    nsExec::ExecToLog '"$INSTDIR\gleaner-volunteer.exe" join "$Line"'
    Pop $0
  ${ElseIf} ${FileExists} "$LOCALAPPDATA\gleaner\volunteer.line"
  ${OrIf} ${FileExists} "$1\gleaner\volunteer.line"
    nsExec::ExecToLog '"$INSTDIR\gleaner-volunteer.exe" join kept'
    Pop $0
  ${EndIf}
  ${If} $0 != 0
    SetDetailsView show
    MessageBox MB_ICONEXCLAMATION "The program is installed, but did not join ($0). The entry in the Start menu asks for \
the line again." /SD IDOK
    SetErrorLevel 3
  ${EndIf}
SectionEnd

Section Uninstall
  nsExec::ExecToLog '"$INSTDIR\gleaner-volunteer.exe" leave'
  Pop $0
  ; A service, which Windows lets an administrator alone remove.
  ${If} $0 != 0
    ExecShellWait "runas" "$INSTDIR\gleaner-volunteer.exe" "leave" SW_HIDE
  ${EndIf}
  !insertmacro DELETE_PROGRAM
  Delete "$INSTDIR\LICENSE.txt"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "${SHORTCUT}"
  ; The key, the examples, the line.
  RMDir /r "$LOCALAPPDATA\gleaner"
  DeleteRegKey HKCU "${APPS}"
SectionEnd
